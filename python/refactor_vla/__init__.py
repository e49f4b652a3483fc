"""Typed motor programs from robot demonstrations.

The console command ``refactor-vla`` finds skills in a dataset, learns a library of programs and trains a policy. This
module gives its results to Python:

>>> import refactor_vla
>>> outcome = refactor_vla.annotate("demos/kitchen", "demos/kitchen_subtasks")     # no training needed
>>> library = refactor_vla.Library.load("demo-run")                                # after `refactor-vla demo`
>>> policy = refactor_vla.Policy.load("demo-run")
>>> reply = policy.infer({"observation/image": image, "observation/state": state, "prompt": "turn on the stove"})
>>> reply["actions"].shape, reply["program"], reply["skill"]

``refactor_vla.lerobot`` has a policy with the methods of lerobot's ``PreTrainedPolicy``. Whatever is wrong raises
:class:`RefactorVLAError` with the message of the command line: what was found, what was expected, what to do.
"""

import os as _os

# The products of Candle's matrices run on our own threads. It reads the variable when it is first used.
_os.environ.setdefault("CANDLE_NUM_THREADS", "1")

from ._annotate import Annotation, annotate  # noqa: E402
from ._error import RefactorVLAError  # noqa: E402
from ._library import Entry, Library  # noqa: E402
from ._native import __version__  # noqa: E402
from ._policy import Policy  # noqa: E402

__all__ = ["Annotation", "Entry", "Library", "Policy", "RefactorVLAError", "__version__", "annotate"]
