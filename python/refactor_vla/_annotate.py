"""Named subtasks for datasets."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from ._command import Path, json_of


@dataclass(frozen=True)
class Annotation:
    """What :func:`annotate` wrote."""

    dataset: str
    """The annotated dataset."""
    episodes: int
    frames: int
    subtasks: int
    """Subtasks of all episodes together."""
    names: dict[str, int]
    """How many subtasks have each name."""
    classes: dict[str, int]
    """How many segments are in each class of motions."""
    named_by: dict[str, float]
    """The shares of subtasks that are named by ``instruction``, ``motion``, ``library`` and ``person``."""
    backup: str | None
    """Where the dataset is that was replaced, if it was."""
    figures: dict[str, Any]
    """All figures, as ``refactor-vla annotate --json`` prints them."""


def annotate(
    dataset: Path,
    out: Path | None = None,
    *,
    in_place: bool = False,
    run: Path | None = None,
    format: Literal["subtasks", "language"] = "subtasks",
    names: Path | None = None,
    segments_from: Path | None = None,
    segments: Path | None = None,
    write_names: Path | None = None,
    replace: bool = False,
    link_videos: bool = False,
    state_key: str | None = None,
    action_key: str | None = None,
    control: Iterable[str] = (),
    gripper: Iterable[str] = (),
) -> Annotation:
    """Write named subtasks into a copy of a LeRobot v3 dataset, from states, actions and instructions.

    Nothing is trained, and neither images nor labels are used. Afterwards lerobot has ``dataset[i]["subtask"]``.

    Args:
        dataset: a directory in the LeRobot format v3.0, or ``embedded:libero_goal_mini``.
        out: the directory to create; leave it out with ``in_place``.
        in_place: replace the dataset, and keep it as ``DATASET.backup-1``.
        run: use the skills and the library of this run as classes and names.
        format: ``subtasks`` as lerobot 0.4 reads them, or ``language`` as lerobot 0.6 does.
        names: a TOML file with the name to write for each generated name.
        segments_from: corrected subtasks, as ``segments`` writes them (CSV or JSON), or a dataset that has them.
        segments: write all subtasks to this table as well.
        write_names: write the vocabulary to this file as well.
        replace: replace subtasks that this program did not write.
        link_videos: make videos hard links instead of copies.
        state_key: the column of states, if the dataset has several.
        action_key: the column of actions, if the dataset has several.
        control: what actions mean, such as ``absolute`` or ``left arm=delta``, where it cannot be measured.
        gripper: the columns of grippers, where their names do not say so.

    Raises:
        RefactorVLAError: if the dataset or a file cannot be read, or the result cannot be written.
        KeyboardInterrupt: on Ctrl-C; nothing is written then.
    """
    words: list[Path] = ["annotate", os.fspath(dataset)]
    if out is not None:
        words.append(os.fspath(out))
    flags = {"--in-place": in_place, "--replace": replace, "--link-videos": link_videos}
    words += [flag for flag, given in flags.items() if given]
    options = {
        "--format": format,
        "--run": run,
        "--names": names,
        "--segments-from": segments_from,
        "--segments": segments,
        "--write-names": write_names,
        "--state-key": state_key,
        "--action-key": action_key,
    }
    words += [f"{option}={os.fspath(value)}" for option, value in options.items() if value is not None]
    words += [f"--control={value}" for value in control] + [f"--gripper={value}" for value in gripper]
    figures = json_of([*words, "--json"])
    return Annotation(
        dataset=figures["dataset"],
        episodes=figures["episodes"],
        frames=figures["frames"],
        subtasks=figures["subtasks"],
        names={one["name"]: one["subtasks"] for one in figures["names"]},
        classes={one["name"]: one["segments"] for one in figures["classes"]},
        named_by=dict(figures["named_by"]),
        backup=figures["backup"],
        figures=figures,
    )
