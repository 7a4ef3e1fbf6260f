"""An event loop whose clock jumps to the next timer when nothing else can run."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

# How long a wait without any timer may be rescued by another thread (real seconds).
_THREAD_GRACE_S: Final = 0.5


class Stuck(AssertionError):
    """Every task waits, no timer is set: a real loop would hang here for ever."""


def run_virtual(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from virtual second 0 until it ends. Raises what it raises, or Stuck.

    A minute of `asyncio.sleep` or `asyncio.timeout` takes no time. Give code that reads a clock
    `now=asyncio.get_running_loop().time`, or it will read another one than its timers follow.
    """
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(coroutine)


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0 and moves only when every task waits: then to the next timer at once.

    Work on other threads does not hold the clock: a timer passes it at once.
    """

    def __init__(self) -> None:
        self._virtual_s = 0.0
        super().__init__(_JumpingSelector(self))

    def time(self) -> float:
        return self._virtual_s

    def jump(self, seconds: float) -> None:
        """Move the clock forward, never back."""
        self._virtual_s += max(0.0, seconds)


class _JumpingSelector(selectors.DefaultSelector):
    """Asks the operating system without waiting; a wait that is left over moves the clock."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(_THREAD_GRACE_S if timeout is None else 0)
        if events:
            return events
        if timeout is None:
            raise Stuck("every task waits and no timer is set: something was never sent or set")
        self._loop.jump(timeout)
        return []
