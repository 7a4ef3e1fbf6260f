"""What a replica's model has got done: the evidence of progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

In = TypeVar("In")
Out = TypeVar("Out")


class Progress:
    """Counts steps: of any sequence of any request, because a batch moves as a whole and a request
    that waits for its turn is not stuck. Written by the thread that computes, read by the
    watchdog's. thread: the ident of the thread that computes batches, None before the first.
    longest_step_s: of the steps that were measured.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.steps = 0
        self.longest_step_s = 0.0
        self.thread: int | None = None
        self._measured_from: float | None = None

    def step(self) -> None:
        self.steps += 1
        if self._measured_from is not None:
            now = self._now()
            self.longest_step_s = max(self.longest_step_s, now - self._measured_from)
            self._measured_from = now

    @contextmanager
    def measured(self) -> Iterator[None]:
        """While there is work all the time: from here to the first step, and between steps."""
        self._measured_from = self._now()
        try:
            yield
        finally:
            self._measured_from = None

    def counted(
        self, compute: Callable[[Sequence[In]], Sequence[Out]]
    ) -> Callable[[Sequence[In]], Sequence[Out]]:
        """A batcher's work as one step each time, whatever comes of it."""

        def computed(batch: Sequence[Any]) -> Sequence[Any]:
            self.thread = threading.get_ident()
            try:
                return compute(batch)
            finally:
                self.step()

        return computed
