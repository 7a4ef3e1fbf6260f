import asyncio

import pytest
from starlette.types import Message

from modelyard.ingress.disconnect import cancelled_when_gone


def receiving(*messages: Message) -> asyncio.Queue[Message]:
    queue: asyncio.Queue[Message] = asyncio.Queue()
    for message in messages:
        queue.put_nowait(message)
    return queue


async def ticks() -> None:
    """Enough turns of the loop for a watcher to start, to finish, and to call back."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_client_that_leaves_cancels_the_body() -> None:
    queue = receiving()
    inside = asyncio.Event()

    async def body() -> None:
        async with cancelled_when_gone(queue.get):
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await inside.wait()
    queue.put_nowait({"type": "http.disconnect"})
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nothing_happens_while_the_client_stays_or_once_the_body_is_done() -> None:
    queue = receiving({"type": "http.request", "body": b"", "more_body": False})

    async def body_and_after() -> str:
        async with cancelled_when_gone(queue.get):
            await ticks()
        queue.put_nowait({"type": "http.disconnect"})
        await ticks()
        return "finished"

    assert await asyncio.create_task(body_and_after()) == "finished"


async def test_a_client_that_leaves_in_the_bodys_last_tick_cancels_nothing_after_it() -> None:
    queue = receiving()

    async def body_and_after() -> str:
        async with cancelled_when_gone(queue.get):
            await ticks()
            queue.put_nowait({"type": "http.disconnect"})
            # The watcher runs first in the next tick, the body second, the callback in the third.
            await asyncio.sleep(0)
        await ticks()
        return "finished"

    assert await asyncio.create_task(body_and_after()) == "finished"


async def test_an_error_of_the_body_comes_out() -> None:
    with pytest.raises(LookupError):
        async with cancelled_when_gone(receiving().get):
            raise LookupError
