"""Policies of runs in this process."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from . import _native
from ._command import Path


class Policy:
    """The policy of a finished run. ``refactor-vla serve`` answers the same requests over a websocket.

    >>> policy = Policy.load("demo-run")
    >>> reply = policy.infer({"observation/image": image, "observation/state": state, "prompt": "turn on the stove"})
    >>> robot.execute(reply["actions"][:5])
    """

    def __init__(self, session: _native.Session) -> None:
        self._session = session
        self._metadata: dict[str, Any] = json.loads(session.metadata())
        for text in session.warnings:
            warnings.warn(text, stacklevel=3)

    @classmethod
    def load(
        cls,
        run: Path,
        *,
        device: str = "auto",
        weights: Path | None = None,
        replan: int = 5,
        emit: Literal["plan", "call", "request"] = "plan",
        arm: str | None = None,
    ) -> Policy:
        """Load the policy of a run.

        Args:
            run: the directory of a finished run.
            device: ``auto``, ``cpu`` or ``cuda:N``.
            weights: the directory of the DINOv2 weights that the run's features were made with.
            replan: how many actions of each reply are executed, by which the policy measures time.
            emit: when programs are written: when all calls of the ``plan`` have ended, after each ``call``, or at each
                ``request``.
            arm: which policy of the run: ``with`` (the library, the default), ``t1`` (without), ``no_programs``.

        Raises:
            RefactorVLAError: if the run is not finished, or its files do not belong together.
        """
        if replan < 1:
            raise ValueError(f"replan is {replan}; expected at least 1")
        weights = None if weights is None else os.fspath(weights)
        return cls(_native.Session(os.fspath(run), device, weights, replan, emit, arm))

    @property
    def metadata(self) -> dict[str, Any]:
        """What the policy expects and returns: ``cameras``, ``state_dim``, ``action_horizon``, ``action_names``, …"""
        return dict(self._metadata)

    def infer(self, observation: Mapping[str, Any]) -> dict[str, Any]:
        """Answer an observation.

        Args:
            observation: images as uint8 ``[height, width, 3]``, the state in the units of the dataset, and ``prompt``
                (an instruction) or ``program`` (in the policy's language). Keys are those of openpi, such as
                ``observation/image``, or the dataset's, such as ``observation.images.image``. Later observations of
                an episode need no prompt. ``"reset": True`` begins an episode, and so does another task.

        Returns:
            ``actions`` (float32 ``[action_horizon, action_dim]``, in the units of the dataset), the ``program`` that is
            executed, its active ``skill`` (``name``, ``readable``, ``call``), and the other keys of a served reply. An
            observation that only resets is answered by ``{"reset": True}``.

        Raises:
            RefactorVLAError: if something is missing or of the wrong shape or type, or the program is ill-typed.
        """
        return self.infer_batch({0: observation})[0]

    def infer_batch(self, observations: Mapping[int, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
        """Answer observations of several robots together. Each has a number, by which its episode is remembered."""
        asked = [(number, {**observation}) for number, observation in observations.items()]
        answers = self._session.infer(asked)
        return {number: self._reply(answer) for (number, _), answer in zip(asked, answers, strict=True)}

    def reset(self) -> None:
        """Forget all episodes: the next observations need a task."""
        self._session.reset()

    def _reply(self, answer: tuple[bytes, str] | None) -> dict[str, Any]:
        if answer is None:
            return {"reset": True}
        data, rest = answer
        shape: Sequence[int] = (self._metadata["action_horizon"], self._metadata["action_dim"])
        # A copy, because the data of a bytes object cannot be changed.
        actions = np.frombuffer(data, dtype="<f4").reshape(shape).astype(np.float32)
        return {"actions": actions, **json.loads(rest)}

    def __repr__(self) -> str:
        about = self._metadata
        actions = f"{about['action_horizon']}×{about['action_dim']}"
        return f"Policy({about['run']!r}, cameras={about['cameras']}, actions={actions})"
