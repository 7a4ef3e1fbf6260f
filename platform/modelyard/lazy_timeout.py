"""A timeout for many short waits in a row, such as the items of a stream."""

from __future__ import annotations

import asyncio
from types import TracebackType


class LazyTimeout:
    """`with timeout.within(s): await ...`, like asyncio.timeout, with one timer for all its waits.

    asyncio.timeout sets and clears a timer of the loop per use: 14 us, three times per item of a
    stream. Here a wait that ends in time only notes so; the timer, once it rings, looks what is
    waited for by then, and is set again for that. One wait at a time.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = 0.0
        self._until: float | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._expired = False

    def within(self, seconds: float) -> LazyTimeout:
        """Bound the next wait, which raises TimeoutError when it takes longer."""
        return self.until(self._loop.time() + seconds)

    def until(self, when: float) -> LazyTimeout:
        """The same up to a time of the loop's clock."""
        self._until = when
        return self

    def __enter__(self) -> None:
        task = self._task = asyncio.current_task()
        assert task is not None
        assert self._until is not None, "bound it with within() or until()"
        self._cancelling = task.cancelling()
        if self._timer is None or self._until < self._rings_at:
            self._set(self._until)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        task, self._task, self._until = self._task, None, None
        if not self._expired:
            return
        self._expired = False
        assert task is not None
        # Ours alone, not also somebody else's who wants this task gone: as asyncio.timeout does it.
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def close(self) -> None:
        """Drop the timer, which would else hold this object until it rings."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._ring)
        self._rings_at = when

    def _ring(self) -> None:
        self._timer = None
        if self._until is None:
            return
        if self._loop.time() < self._until:
            self._set(self._until)
            return
        self._expired = True
        assert self._task is not None
        self._task.cancel()
