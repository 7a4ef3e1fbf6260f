"""A world for controls, and commands for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from modelyard.control.verbs import Command
from modelyard.testing.control_world import ControlWorld


@pytest.fixture
def world() -> ControlWorld:
    return ControlWorld()


@pytest.fixture
def command() -> Callable[..., Command]:
    """A command with an id of its own, unless one is given."""
    count = 0

    def make(verb: str, request: str | None = None, **args: Any) -> Command:
        nonlocal count
        count += 1
        return Command(verb, args, "ops-1", request or f"request-{count}")

    return make
