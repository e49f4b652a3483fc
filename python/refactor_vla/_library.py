"""Libraries of programs as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ._command import Path, json_of


@dataclass(frozen=True)
class Entry:
    """An entry of a library: a name for a program."""

    name: str
    """What programs call it, such as ``fn_0``."""
    type: str | None
    """Its principal type, such as ``Pose -> Motion``; ``None`` in corpora without types."""
    body: str
    """The program that it stands for, in the language of ``refactor-vla program``."""
    uses: int | None
    """How many calls of it there are in the corpus."""
    gain: float | None
    """By how much it shortens the corpus: in nats, or in the units of :attr:`Library.cost`."""
    calls: tuple[str, ...]
    """Other entries that its body calls."""


class Library(Mapping[str, Entry]):
    """The library of a run: entries by name, in the order in which they were learned.

    >>> library = Library.load("demo-run")
    >>> library["fn_0"].body
    """

    def __init__(self, entries: Mapping[str, Entry], *, cost: str = "nats", finished: bool | None = None) -> None:
        self._entries = dict(entries)
        self.cost = cost
        """What gains are counted in: ``nats`` or ``stitch``."""
        self.finished = finished
        """Whether the run is finished; ``None`` for a library from a file."""

    @classmethod
    def load(cls, run: Path) -> Library:
        """Load the library of a run (a directory), or one that ``library compress`` wrote (a JSON file)."""
        shown = json_of(["library", "show", run, "--json"])
        entries = {
            one["name"]: Entry(
                name=one["name"],
                type=one.get("type"),
                body=one["body"],
                uses=one.get("uses"),
                gain=one.get("gain"),
                calls=tuple(one.get("calls", ())),
            )
            for one in shown["abstractions"]
        }
        return cls(entries, cost=shown["cost"], finished=shown.get("finished"))

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries, in the order in which they were learned."""
        return tuple(self._entries.values())

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        lines = [f"  {entry.name} : {entry.type} = {entry.body}" for entry in self.entries]
        return "\n".join([f"Library of {len(self)} entries", *lines])
