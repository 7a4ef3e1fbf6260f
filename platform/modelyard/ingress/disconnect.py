"""Noticing that a client has left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.types import Receive


@asynccontextmanager
async def cancelled_when_gone(receive: Receive) -> AsyncGenerator[None]:
    """Cancel the current task when the client leaves while the body runs.

    Serve cancels a request by itself only once it notices, which for a unary request over HAProxy
    may be never; polling `is_disconnected` would cost a wake-up per poll and still be late.
    The request's body must have been read before: what `receive` gives next is the disconnect.
    """
    task = asyncio.current_task()
    assert task is not None
    watcher = asyncio.create_task(_left(receive))
    inside = True

    def cancel(done: asyncio.Task[None]) -> None:
        if not done.cancelled() and done.exception() is None and inside:
            task.cancel()

    watcher.add_done_callback(cancel)
    try:
        yield
    finally:
        # A flag and not remove_done_callback: a watcher that finished in the body's last tick has
        # its callback scheduled already, which would cancel whatever the task does next.
        inside = False
        watcher.cancel()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
