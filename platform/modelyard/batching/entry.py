"""One input in the batcher's queue, and the caller who waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from modelyard.batching.form import Waiting

In = TypeVar("In")
Out = TypeVar("Out")


@dataclass(eq=False, slots=True)
class Entry(Generic[In, Out]):
    """`arrived_s` is by the loop's clock."""

    place: Waiting
    item: In
    arrived_s: float
    future: asyncio.Future[Out]

    def settle(self, result: Out | Exception) -> None:
        if self.future.done():
            return  # the caller has gone: the work is thrown away
        if isinstance(result, Exception):
            self.future.set_exception(result)
        else:
            self.future.set_result(result)

    def failed_with(self, error: Exception) -> bool:
        done = self.future.done() and not self.future.cancelled()
        return done and self.future.exception() is error


def index_of(error: Exception, entries: Sequence[Entry[In, Out]]) -> int:
    """Which of a request's inputs failed with `error`, counted from 0."""
    return next(index for index, entry in enumerate(entries) if entry.failed_with(error))
