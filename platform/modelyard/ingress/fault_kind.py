"""A bug, as a log may have it that holds nothing of prompts and answers."""

from __future__ import annotations

import traceback
from pathlib import PurePath


def kind_of(error: BaseException) -> str:
    """Its kind and where it was raised: `KeyError at shadow_copy.py:71`. Not its message, nor a
    traceback, whose last line is the message: it may quote what was read."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + place
