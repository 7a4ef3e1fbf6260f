import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from modelyard.contract.envelope import Item
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.prepared import Prepared
from modelyard.testing.in_memory import InMemoryIngress
from modelyard.testing.scripted_transport import End, Sleep, Step
from modelyard.testing.virtual_time import run_virtual

Prepare = Callable[..., Prepared]
Ingress = Callable[..., InMemoryIngress]


def outcome(ingress: InMemoryIngress) -> tuple[int, str, str, int]:
    """Status, code, reason and counted tokens of the one record there must be."""
    (record,) = ingress.records
    return record.status, record.code, record.reason, record.output_tokens


def cancelled_at(
    ingress_at: Ingress, prepare: Prepare, at_s: float, script: list[Step], *, stream: bool
) -> InMemoryIngress:
    """Cancel a request, as a server does for a client that left, after so many seconds."""

    async def main() -> InMemoryIngress:
        ingress = ingress_at(script)
        prepared = prepare(ingress.pipeline, stream=stream)

        async def consume() -> None:
            if not stream:
                await ingress.pipeline.call(prepared)
                return
            async with aclosing(ingress.pipeline.stream(prepared)) as items:
                async for _ in items:
                    await asyncio.sleep(0.5)  # the client takes its time

        task = asyncio.create_task(consume())
        await asyncio.sleep(at_s)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ingress

    return run_virtual(main())


def test_a_unary_call_is_stopped_at_the_replica(
    ingress_at: Ingress, prepare: Prepare, unary: Item
) -> None:
    ingress = cancelled_at(ingress_at, prepare, 1, [Sleep(5), unary], stream=False)
    assert ingress.transport.calls[0].end is End.CANCELLED
    assert outcome(ingress) == (CLIENT_GONE, "cancelled", "client_gone", 0)


@pytest.mark.parametrize(
    ("at_s", "end", "tokens"),
    [
        (1.0, End.CANCELLED, 0),  # before the first item
        (2.2, End.CLOSED, 1),  # while the first one is sent
        (3.0, End.CANCELLED, 1),  # between two items
        (4.7, End.CLOSED, 2),  # while the second one is sent
    ],
)
def test_a_stream_is_stopped_at_the_replica_at_any_moment(
    ingress_at: Ingress,
    prepare: Prepare,
    first: Item,
    last: Item,
    at_s: float,
    end: End,
    tokens: int,
) -> None:
    script: list[Step] = [Sleep(2), first, Sleep(2), first, Sleep(2), last]
    ingress = cancelled_at(ingress_at, prepare, at_s, script, stream=True)
    assert ingress.transport.calls[0].end is end
    assert outcome(ingress) == (CLIENT_GONE, "cancelled", "client_gone", tokens)


def test_a_client_that_leaves_on_the_last_byte_was_served(
    ingress_at: Ingress, prepare: Prepare, last: Item
) -> None:
    ingress = cancelled_at(ingress_at, prepare, 0.25, [last], stream=True)
    assert outcome(ingress) == (200, "ok", "", 2)
    assert not ingress.transport.calls[0].stopped


@pytest.mark.parametrize("taken", [1, 2])
async def test_closing_the_stream_settles_it_once(
    prepare: Prepare, first: Item, last: Item, taken: int
) -> None:
    ingress = InMemoryIngress([first, first, last])
    items = ingress.pipeline.stream(prepare(ingress.pipeline, stream=True))
    for _ in range(taken):
        await anext(items)
    await items.aclose()
    await items.aclose()
    assert ingress.transport.calls[0].end is End.CLOSED
    assert outcome(ingress) == (CLIENT_GONE, "cancelled", "client_gone", taken)


async def test_settling_again_changes_nothing(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([unary])
    prepared = prepare(ingress.pipeline)
    await ingress.pipeline.call(prepared)
    ingress.pipeline.books.settle(prepared, 500, "internal")
    assert outcome(ingress) == (200, "ok", "", 2)
