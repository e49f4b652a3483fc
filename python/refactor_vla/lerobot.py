"""A policy with the methods of lerobot's ``PreTrainedPolicy``.

Neither lerobot nor torch is imported here: NumPy arrays are answered by NumPy arrays, torch tensors by torch tensors
on the same device. Batches are those of ``LeRobotDataset`` and of lerobot's environments: images as
``[batch, 3, height, width]`` from 0 to 1, ``observation.state`` **in the units of the dataset**, and ``task`` as a list
of texts. States must not be normalised before, and actions must not be unnormalised afterwards: the policy does both.

>>> from refactor_vla.lerobot import RefactorVLAPolicy
>>> policy = RefactorVLAPolicy.from_pretrained("demo-run")
>>> policy.reset()
>>> action = policy.select_action(batch)          # [batch, action_dim]
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ._command import Path
from ._error import RefactorVLAError
from ._policy import Policy

__all__ = ["RefactorVLAConfig", "RefactorVLAPolicy"]


@dataclass
class RefactorVLAConfig:
    """What lerobot's scripts read from ``policy.config``."""

    n_action_steps: int = 5
    """How many actions of a chunk are executed before the next one."""
    chunk_size: int = 0
    """How many actions a chunk has; known once the policy is loaded."""
    device: str = "auto"
    """``auto``, ``cpu`` or ``cuda:N``."""
    n_obs_steps: int = 1
    """Observations that the policy sees at once."""
    cameras: list[str] = field(default_factory=list)
    """The keys of the images in a batch."""
    state_dim: int = 0
    """How many numbers a state has."""
    action_dim: int = 0
    """How many numbers an action has."""

    @property
    def type(self) -> str:
        """The policy's name among lerobot's."""
        return "refactor_vla"


class RefactorVLAPolicy:
    """A run's policy as lerobot calls policies. It is trained by ``refactor-vla run``, not by lerobot."""

    config_class = RefactorVLAConfig
    name = "refactor_vla"

    def __init__(self, policy: Policy, config: RefactorVLAConfig | None = None) -> None:
        about = policy.metadata
        self.policy = policy
        self.config = config or RefactorVLAConfig()
        self.config.chunk_size = about["action_horizon"]
        self.config.n_action_steps = min(self.config.n_action_steps, self.config.chunk_size)
        self.config.cameras = list(about["cameras"])
        self.config.state_dim, self.config.action_dim = about["state_dim"], about["action_dim"]
        self.replies: list[dict[str, Any]] = []
        """The last replies of :meth:`Policy.infer`, one for each row of the batch, with programs and skills."""
        self._state_key: str = about["state_key"] or "observation.state"
        self._queue: deque[Any] = deque()

    @classmethod
    def from_pretrained(
        cls,
        pretrained_name_or_path: Path,
        *,
        config: RefactorVLAConfig | None = None,
        force_download: bool = False,
        token: str | bool | None = None,
        cache_dir: Path | None = None,
        local_files_only: bool = False,
        revision: str | None = None,
        strict: bool = False,
        weights: Path | None = None,
        emit: Literal["plan", "call", "request"] = "plan",
        arm: str | None = None,
        **unused: Any,
    ) -> RefactorVLAPolicy:
        """Load the policy of a run: a directory, or a repository of the Hugging Face Hub with the files of one.

        ``weights``, ``emit`` and ``arm`` are those of :meth:`Policy.load`; the others are those of lerobot. A run is
        always loaded strictly.
        """
        run = os.fspath(pretrained_name_or_path)
        if unused:
            raise TypeError(f"from_pretrained has no argument `{sorted(unused)[0]}`")
        if not os.path.isdir(run):
            run = _downloaded(
                run,
                force_download=force_download,
                token=token,
                cache_dir=cache_dir,
                local_files_only=local_files_only,
                revision=revision,
            )
        config = config or RefactorVLAConfig()
        policy = Policy.load(
            run, device=config.device, weights=weights, replan=config.n_action_steps, emit=emit, arm=arm
        )
        return cls(policy, config)

    def reset(self) -> None:
        """Begin an episode in every row of the batch. Call it when the environment is reset."""
        self._queue.clear()
        self.policy.reset()

    def select_action(self, batch: Mapping[str, Any], **_: Any) -> Any:
        """The next action of each row, ``[batch, action_dim]``; a used-up chunk is followed by a new one."""
        if not self._queue:
            chunk = self.predict_action_chunk(batch)
            self._queue.extend(chunk[:, at] for at in range(self.config.n_action_steps))
        return self._queue.popleft()

    def predict_action_chunk(self, batch: Mapping[str, Any], **_: Any) -> Any:
        """The next actions of each row, ``[batch, chunk_size, action_dim]``. ``replies`` has their programs."""
        rows = self._rows(batch)
        replies = self.policy.infer_batch(dict(enumerate(rows)))
        self.replies = [replies[at] for at in range(len(rows))]
        actions = np.stack([reply["actions"] for reply in self.replies])
        like = batch[self._state_key] if self._state_key in batch else next(iter(batch.values()))
        return _as(actions, like)

    def forward(self, batch: Mapping[str, Any]) -> Any:
        """Not available: the policy is trained by the command line."""
        raise _untrainable()

    __call__ = forward

    def get_optim_params(self) -> Any:
        """Not available: the policy is trained by the command line."""
        raise _untrainable()

    def eval(self) -> RefactorVLAPolicy:
        """Does nothing: the policy is always in evaluation mode."""
        return self

    def train(self, mode: bool = True) -> RefactorVLAPolicy:
        """Accepts ``False`` only."""
        if mode:
            raise _untrainable()
        return self

    def to(self, *_: Any, **__: Any) -> RefactorVLAPolicy:
        """Does nothing: the device is chosen when the policy is loaded, as ``config.device``."""
        return self

    def _rows(self, batch: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The observations of a batch, one for each row."""
        columns = {key: _array(value) for key, value in batch.items() if key.startswith("observation.")}
        wanted = [*self.config.cameras, *([self._state_key] if self.config.state_dim else [])]
        missing = [key for key in wanted if key not in columns]
        if missing:
            expected, found = _quoted(wanted), _quoted(columns) or "nothing"
            raise RefactorVLAError(
                f"the batch has no {_quoted(missing)}\n  found     {found}\n  expected  {expected}",
                f"the batch has no {_quoted(missing)}",
                [("found", found), ("expected", expected)],
            )
        task = batch.get("task")
        lengths = {len(columns[key]) for key in wanted} or {1 if isinstance(task, str) or task is None else len(task)}
        if len(lengths) > 1:
            raise RefactorVLAError(f"the rows of the batch differ: {sorted(lengths)}")
        count = lengths.pop()
        tasks = [task] * count if task is None or isinstance(task, str) else list(task)
        if len(tasks) != count:
            raise RefactorVLAError(f"the batch has {count} rows and {len(tasks)} tasks")
        rows: list[dict[str, Any]] = []
        for at in range(count):
            row: dict[str, Any] = {key: _picture(key, columns[key][at]) for key in self.config.cameras}
            if self.config.state_dim:
                row[self._state_key] = columns[self._state_key][at].astype(np.float32)
            if tasks[at] is not None:
                row["prompt"] = tasks[at]
            rows.append(row)
        return rows


def _array(value: Any) -> np.ndarray[Any, Any]:
    """A NumPy array of an array or of a torch tensor on any device."""
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def _as(actions: np.ndarray[Any, Any], like: Any) -> Any:
    """The actions as what the batch has: torch's tensors on the same device, or NumPy's arrays."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.from_numpy(actions).to(like.device)
    return actions


def _picture(key: str, image: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A picture as uint8 ``[height, width, 3]``, of one with channels first or last, in bytes or from 0 to 1."""
    if image.ndim != 3 or 3 not in (image.shape[0], image.shape[2]):
        found = f"{image.dtype} {list(image.shape)}"
        raise RefactorVLAError(f"`{key}` has rows of {found}; expected images as [3, height, width]")
    if image.shape[0] == 3 and image.shape[2] != 3:
        image = image.transpose(1, 2, 0)
    if np.issubdtype(image.dtype, np.floating):
        least, most = float(image.min()), float(image.max())
        if not (-1e-3 <= least and most <= 1 + 1e-3):
            raise RefactorVLAError(
                f"`{key}` has values from {least:.3g} to {most:.3g}; expected 0 to 1, not normalised"
            )
        image = np.rint(image.clip(0, 1) * 255).astype(np.uint8)
    return np.ascontiguousarray(image)


def _downloaded(name: str, **options: Any) -> str:
    """The directory of a repository of the Hub."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise RefactorVLAError(
            f"there is no directory `{name}`\n"
            "hint: check the path; to load a run from the Hugging Face Hub, `pip install refactor-vla[hub]`",
            f"there is no directory `{name}`",
            hint="check the path; to load a run from the Hugging Face Hub, `pip install refactor-vla[hub]`",
        ) from error
    return str(snapshot_download(name, **options))


def _quoted(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _untrainable() -> NotImplementedError:
    return NotImplementedError("the policy is trained by `refactor-vla run`, not by lerobot")
