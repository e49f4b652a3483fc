"""The exception of this package."""

from __future__ import annotations


class RefactorVLAError(Exception):
    """Something was wrong with the input; ``str(error)`` is the whole message of the command line.

    Attributes:
        message: what is wrong, in one line.
        facts: more about it by name, such as ``found`` and ``expected``.
        problems: the single problems, if there are several.
        hint: what to do about it, if that is known.
    """

    message: str
    facts: dict[str, str]
    problems: list[str]
    hint: str | None

    def __init__(
        self,
        text: str,
        message: str | None = None,
        facts: list[tuple[str, str]] | None = None,
        problems: list[str] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(text)
        self.message = text if message is None else message
        self.facts = dict(facts or [])
        self.problems = list(problems or [])
        self.hint = hint
