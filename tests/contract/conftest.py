from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from modelyard.contract.errors import InvalidRequest


@pytest.fixture
def steps() -> Callable[[Callable[[str], object], str], int]:
    """Counts the lines of Python run: a time would measure the machine and its neighbours."""
    return _steps


def _steps(read: Callable[[str], object], text: str) -> int:
    lines = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        with suppress(InvalidRequest):
            read(text)
    finally:
        sys.settrace(before)
    return lines
