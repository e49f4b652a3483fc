"""Commands of the program as functions."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from typing import Any

from . import _native

Path = str | os.PathLike[str]


def json_of(words: Iterable[Path]) -> Any:
    """Run a command that prints JSON, and return what it prints. Its warnings become Python's."""
    printed, told = _native.call([os.fspath(word) for word in words])
    for text in told:
        warnings.warn(text, stacklevel=3)
    return json.loads(printed)
