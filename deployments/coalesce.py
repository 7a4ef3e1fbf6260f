"""What waits for a slow consumer leaves as one item. A timer would hold tokens back; this does not.

Each item that leaves a replica is pickled, sent, fetched and written: 0.2 ms of CPU over the path,
and vLLM makes several at once (the role with the first token; a chunk for each of n choices; the
finish reason, the usage and the end).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from modelyard.contract.envelope import Item


async def coalesced(items: AsyncGenerator[Item]) -> AsyncGenerator[Item]:
    """The same bytes, tokens and end in fewer items. Closing it closes `items`.

    `items` is drained as fast as it gives, without a bound: an answer has an output cap.
    An exception of `items` comes after all that was made before it.
    """
    waiting: list[Item] = []
    more = asyncio.Event()

    async def drain() -> None:
        async with aclosing(items):
            async for item in items:
                waiting.append(item)
                more.set()

    draining = asyncio.create_task(drain())
    draining.add_done_callback(lambda _: more.set())
    try:
        while waiting or not draining.done():
            if waiting:
                one = merged(waiting)
                waiting.clear()
                yield one
            else:
                more.clear()
                await more.wait()
        draining.result()
    finally:
        draining.cancel()
        await asyncio.wait([draining])
        if not draining.cancelled():
            draining.exception()  # taken, so that asyncio does not report it as lost


def merged(items: list[Item]) -> Item:
    """One item for several in a row; only the last of them may be final."""
    if len(items) == 1:
        return items[0]
    return Item(
        b"".join(item.data for item in items),
        sum(item.output_tokens for item in items),
        items[-1].final,
    )
