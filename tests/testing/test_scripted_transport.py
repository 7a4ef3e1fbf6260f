import asyncio
from contextlib import aclosing

import pytest

from modelyard.contract.envelope import Answer, Envelope, Failure, Item, Usage
from modelyard.contract.errors import ReplicaFailed
from modelyard.routing.pool import Cell
from modelyard.testing.scripted_transport import End, ScriptedTransport, Sleep
from modelyard.testing.virtual_time import run_virtual

CELL = Cell("m@1", "Generator")
ENVELOPE = Envelope("c", "m@1", "chat", b"{}", True, 1000, "batch", "r", "a", "m")
ONE, LAST = Item(b"1", 1), Item(b"2", 1, Usage(1, 2))


async def all_of(transport: ScriptedTransport) -> list[Answer]:
    async with aclosing(transport.stream(CELL, ENVELOPE)) as answers:
        return [answer async for answer in answers]


async def test_a_stream_plays_its_script_and_is_complete() -> None:
    transport = ScriptedTransport([ONE, LAST])
    assert await all_of(transport) == [ONE, LAST]
    (call,) = transport.calls
    assert (call.cell.app, call.envelope, call.sent, call.end) == ("m@1", ENVELOPE, 2, End.COMPLETE)
    assert not call.stopped


async def test_a_call_gives_the_first_answer() -> None:
    failure = Failure("overloaded", "full")
    transport = ScriptedTransport([LAST], [failure])
    assert [await transport.call(CELL, ENVELOPE) for _ in range(2)] == [
        LAST,
        failure,
    ]
    assert [call.end for call in transport.calls] == [End.COMPLETE] * 2


async def test_an_exception_in_the_script_is_raised() -> None:
    transport = ScriptedTransport([ONE, ReplicaFailed("gone")])
    with pytest.raises(ReplicaFailed):
        await all_of(transport)
    assert transport.calls[0].end is End.RAISED


async def test_closing_between_items_stops_the_work() -> None:
    transport = ScriptedTransport([ONE, LAST])
    stream = transport.stream(CELL, ENVELOPE)
    await anext(stream)
    await stream.aclose()
    assert transport.calls[0].end is End.CLOSED
    assert transport.calls[0].stopped


async def test_closing_after_the_final_item_stops_nothing() -> None:
    transport = ScriptedTransport([LAST])
    stream = transport.stream(CELL, ENVELOPE)
    await anext(stream)
    await stream.aclose()
    assert transport.calls[0].end is End.COMPLETE


def test_a_caller_that_gives_up_waiting_cancels() -> None:
    async def main() -> End:
        transport = ScriptedTransport([Sleep(60), LAST])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(5):
                await transport.call(CELL, ENVELOPE)
        return transport.calls[0].end

    assert run_virtual(main()) is End.CANCELLED


async def test_an_event_holds_the_script_back() -> None:
    gate = asyncio.Event()
    transport = ScriptedTransport([ONE, gate, LAST])
    stream = transport.stream(CELL, ENVELOPE)
    await anext(stream)
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    assert await waiting == LAST
    await stream.aclose()


async def test_a_call_without_a_script_is_a_mistake_of_the_test() -> None:
    transport = ScriptedTransport()
    with pytest.raises(AssertionError, match="no script is left"):
        await all_of(transport)
    transport.expect([])
    with pytest.raises(AssertionError, match="holds no answer"):
        await transport.call(CELL, ENVELOPE)
