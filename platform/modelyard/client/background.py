"""Coroutines for callers without a loop: one loop, in one thread, for the whole process."""

from __future__ import annotations

import asyncio
import functools
import queue
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from contextlib import aclosing
from typing import Any, Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_END: Final = object()
_first_use: Final = threading.Lock()


def _loop() -> asyncio.AbstractEventLoop:
    """The one loop, whichever thread is first."""
    # functools.cache alone runs the function once for each thread that finds the cache empty.
    with _first_use:
        return _started_loop()


@functools.cache
def _started_loop() -> asyncio.AbstractEventLoop:
    """A daemon, so that it ends with the process."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="modelyard-client", daemon=True).start()
    return loop


def blocking(call: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same function, waiting for its answer. An interrupt of the wait cancels the call."""

    @functools.wraps(call)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        future = asyncio.run_coroutine_threadsafe(call(*args, **kwargs), _loop())
        try:
            return future.result()
        finally:
            future.cancel()

    return wait


def blocking_stream(
    call: Callable[P, AsyncGenerator[T]],
) -> Callable[P, Generator[T]]:
    """The same stream for an ordinary `for`. Leaving the loop (or `close()`) cancels it.

    What has arrived waits in a queue without a bound: a reader that takes its time must not hold
    the model's slot, and max_output_tokens bounds what there is.
    """

    @functools.wraps(call)
    def read(*args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        arrived: queue.SimpleQueue[Any] = queue.SimpleQueue()

        async def pump() -> None:
            async with aclosing(call(*args, **kwargs)) as items:
                async for item in items:
                    arrived.put(item)

        pumping = asyncio.run_coroutine_threadsafe(pump(), _loop())
        pumping.add_done_callback(lambda _: arrived.put(_END))
        try:
            while (item := arrived.get()) is not _END:
                yield item
            pumping.result()
        finally:
            pumping.cancel()

    return read
