import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Answer, Envelope, Failure, Item
from modelyard.contract.errors import ReplicaFailed
from modelyard.contract.operations import Operation
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.responses import (
    DONE,
    KEEP_ALIVE,
    KEEP_ALIVE_S,
    StreamBroken,
    answer_headers,
)
from modelyard.routing.pool import Cell
from modelyard.testing.asgi_client import Exchange, start
from modelyard.testing.in_memory import ALPHA_KEY, InMemoryIngress, bearer, table_record
from modelyard.testing.scripted_transport import End, ScriptedTransport, Sleep, Step
from modelyard.testing.virtual_time import run_virtual

Ingress = Callable[..., InMemoryIngress]
BodyFor = Callable[..., dict[str, Any]]
PATHS = {Operation.CHAT: "/v1/chat/completions", Operation.GENERATE: "/v1/generate"}
DIED = ReplicaFailed("the replica died", reason="incomplete")
FULL = Failure("overloaded", "full: later", reason="queue_full", retry_after_s=3.0)
both_kinds = pytest.mark.parametrize("operation", PATHS)


@pytest.fixture
def streaming(ingress_at: Ingress, body_for: BodyFor) -> Callable[..., tuple[Any, Exchange]]:
    """Begin a streamed request against a script: the ingress and the exchange."""

    def begin(
        *script: Step, operation: Operation = Operation.CHAT, send_s: float = 0.0, **changes: Any
    ) -> tuple[InMemoryIngress, Exchange]:
        ingress = ingress_at(list(script))
        exchange = start(
            ingress.app,
            "POST",
            PATHS[operation],
            body=body_for(operation, stream=True, **changes),
            headers=bearer(ALPHA_KEY) | {"x-request-id": "r-1"},
            send_s=send_s,
        )
        return ingress, exchange

    return begin


Streaming = Callable[..., tuple[InMemoryIngress, Exchange]]


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def coroutine() -> None:
        await main()

    run_virtual(coroutine())


def test_an_openai_stream_ends_with_done(streaming: Streaming, first: Item, last: Item) -> None:
    async def main() -> None:
        ingress, exchange = streaming(first, last)
        await exchange.finished()
        assert (exchange.status, exchange.ended, exchange.broken) == (200, True, None)
        assert exchange.body == first.data + last.data + DONE
        assert exchange.body.count(b"[DONE]") == 1
        assert [record.status for record in ingress.records] == [200]

    run(main)


def test_a_native_stream_ends_with_its_last_event(
    streaming: Streaming, first: Item, last: Item
) -> None:
    async def main() -> None:
        _, exchange = streaming(first, last, operation=Operation.GENERATE)
        await exchange.finished()
        assert (exchange.status, exchange.ended, exchange.broken) == (200, True, None)
        assert exchange.body == first.data + last.data

    run(main)


def test_a_stream_carries_the_documented_headers(streaming: Streaming, last: Item) -> None:
    async def main() -> None:
        _, exchange = streaming(last, colour="red")
        await exchange.finished()
        assert exchange.headers == {
            "x-request-id": "r-1",
            "x-model-version": "gen@1.0.0",
            "x-rollout-arm": "stable",
            "x-ignored-fields": "colour",
            "cache-control": "no-store",
            "content-type": "text/event-stream; charset=utf-8",
            "x-accel-buffering": "no",
        }

    run(main)


def test_a_header_says_what_was_made_smaller_and_only_then(
    prepare: Callable[..., Prepared],
) -> None:
    prepared = prepare(InMemoryIngress().pipeline)
    assert "X-Degraded" not in answer_headers(prepared)
    prepared.record.degraded = "max_output_tokens=128"
    assert answer_headers(prepared)["X-Degraded"] == "max_output_tokens=128"


@both_kinds
@pytest.mark.parametrize("error", [FULL, DIED, LookupError("details")], ids=repr)
def test_an_error_before_the_first_item_is_an_ordinary_one(
    streaming: Streaming, operation: Operation, error: Step
) -> None:
    async def main() -> None:
        ingress, exchange = streaming(Sleep(3), error, operation=operation)
        await exchange.finished()
        assert exchange.broken is None
        assert exchange.status == ingress.records[0].status
        assert exchange.status in (500, 502, 503)
        assert exchange.headers["content-type"] == "application/json"
        assert exchange.headers["x-request-id"] == "r-1"
        assert "x-should-retry" in exchange.headers
        record = exchange.json()
        code = record["code" if operation is Operation.GENERATE else "error"]
        assert code == ingress.records[0].code or code["modelyard_code"] == ingress.records[0].code
        assert b"details" not in exchange.body

    run(main)


@pytest.mark.parametrize("error", [FULL, DIED, LookupError("details")], ids=repr)
def test_a_failed_openai_stream_says_why_and_visibly_breaks(
    streaming: Streaming, first: Item, error: Step
) -> None:
    async def main() -> None:
        ingress, exchange = streaming(first, error)
        await exchange.finished()
        assert isinstance(exchange.broken, StreamBroken)
        assert not exchange.ended
        assert b"[DONE]" not in exchange.body
        assert b"details" not in exchange.body
        event = exchange.chunks[-1]
        assert event.startswith(b'data: {"error"')
        assert event.endswith(b"\n\n")
        said = json.loads(event.removeprefix(b"data: "))["error"]
        assert said["modelyard_code"] == ingress.records[0].code
        assert said["request_id"] == "r-1"

    run(main)


@pytest.mark.parametrize("error", [FULL, DIED, LookupError("details")], ids=repr)
def test_a_failed_native_stream_has_one_error_event_and_a_clean_end(
    streaming: Streaming, first: Item, error: Step
) -> None:
    async def main() -> None:
        ingress, exchange = streaming(first, error, operation=Operation.GENERATE)
        await exchange.finished()
        assert (exchange.broken, exchange.ended) == (None, True)
        assert exchange.body.count(b"event: error") == 1
        name, data, *rest = exchange.chunks[-1].split(b"\n")
        assert (name, rest) == (b"event: error", [b"", b""])
        said = json.loads(data.removeprefix(b"data: "))
        assert (said["code"], said["partial"]) == (ingress.records[0].code, True)
        assert b"details" not in exchange.body

    run(main)


def test_a_stream_that_ends_early_is_broken(streaming: Streaming, first: Item) -> None:
    async def main() -> None:
        _, exchange = streaming(first)
        await exchange.finished()
        assert isinstance(exchange.broken, StreamBroken)
        assert b"replica_failed" in exchange.chunks[-1]
        assert b"[DONE]" not in exchange.body

    run(main)


def long_first_token() -> dict[str, Any]:
    return {
        "routes": {
            "chat": {
                "stable": "gen@1.0.0",
                "deadlines": {
                    "first_token_s": 50,
                    "idle_s": 30,
                    "total_s": 60,
                    "early_status_s": 10,
                },
            }
        },
        "tenants": {"alpha": {"region": "eu", "models": ["*"]}},
    }


@pytest.fixture
def patient(ingress_at: Ingress, body_for: BodyFor) -> Callable[..., Any]:
    """Like `streaming`, on a route that waits 50 s for a first token."""
    record = table_record(**long_first_token())
    record["keys"] = record["keys"][:1]
    table = parse_table(record)

    def begin(
        *script: Step, operation: Operation = Operation.CHAT, send_s: float = 0.0
    ) -> tuple[InMemoryIngress, Exchange]:
        ingress = ingress_at(list(script), table=table)
        exchange = start(
            ingress.app,
            "POST",
            PATHS[operation],
            body=body_for(operation, stream=True),
            headers=bearer(ALPHA_KEY),
            send_s=send_s,
        )
        return ingress, exchange

    return begin


@both_kinds
def test_the_status_waits_for_the_first_item_but_not_for_ever(
    patient: Streaming, last: Item, operation: Operation
) -> None:
    async def main() -> None:
        _, exchange = patient(Sleep(22), last, operation=operation)
        await asyncio.sleep(9.9)
        assert exchange.status is None
        await exchange.finished()
        assert exchange.started_s == pytest.approx(10)
        assert exchange.status == 200
        done = DONE if operation is Operation.CHAT else b""
        assert exchange.chunks == [KEEP_ALIVE] * 3 + [last.data + done]
        assert exchange.chunk_times_s == pytest.approx([10, 15, 20, 22])

    run(main)


def test_a_keep_alive_is_a_comment_and_one_newline() -> None:
    assert KEEP_ALIVE == b": keep-alive\n"


def test_a_keep_alive_fills_silences_only(patient: Streaming, first: Item, last: Item) -> None:
    async def main() -> None:
        busy: list[Step] = [step for _ in range(10) for step in (Sleep(2), first)]
        _, exchange = patient(*busy, Sleep(12), last)
        await exchange.finished()
        at = [
            time
            for time, chunk in zip(exchange.chunk_times_s, exchange.chunks, strict=True)
            if chunk == KEEP_ALIVE
        ]
        assert at == pytest.approx([20 + KEEP_ALIVE_S, 20 + 2 * KEEP_ALIVE_S])
        assert exchange.body.endswith(DONE)

    run(main)


def test_a_quick_stream_has_no_keep_alive(streaming: Streaming, first: Item, last: Item) -> None:
    async def main() -> None:
        _, exchange = streaming(Sleep(4), first, Sleep(4), last)
        await exchange.finished()
        assert KEEP_ALIVE not in exchange.chunks
        assert exchange.started_s == 4

    run(main)


@both_kinds
def test_after_an_early_status_an_error_is_in_band(
    patient: Streaming, operation: Operation
) -> None:
    async def main() -> None:
        ingress, exchange = patient(Sleep(12), FULL, operation=operation)
        await exchange.finished()
        assert exchange.status == 200
        assert exchange.chunks[0] == KEEP_ALIVE
        assert ingress.records[0].status == 503
        if operation is Operation.CHAT:
            assert isinstance(exchange.broken, StreamBroken)
            assert exchange.chunks[-1].startswith(b'data: {"error"')
        else:
            assert exchange.ended
            said = json.loads(exchange.chunks[-1].split(b"data: ")[1])
            assert said["partial"] is False

    run(main)


def test_a_slow_client_gets_nothing_after_the_end(
    patient: Streaming, first: Item, last: Item
) -> None:
    async def main() -> None:
        ingress, exchange = patient(Sleep(11), first, last, send_s=7)
        await exchange.finished()
        assert (exchange.broken, exchange.ended) == (None, True)
        assert exchange.body.endswith(last.data + DONE)
        await asyncio.sleep(60)
        assert exchange.body.endswith(last.data + DONE)
        assert len(ingress.records) == 1

    run(main)


class SlowToClose(ScriptedTransport):
    """A transport that has something to wait for when its stream is closed."""

    async def stream(self, cell: Cell, envelope: Envelope) -> AsyncGenerator[Answer]:
        async with aclosing(super().stream(cell, envelope)) as answers:
            try:
                async for answer in answers:
                    yield answer
            finally:
                await asyncio.sleep(20)


def test_a_keep_alive_that_waited_for_a_slow_client_is_not_sent_after_the_end(
    ingress_at: Ingress, body_for: BodyFor, last: Item
) -> None:
    async def main() -> None:
        ingress = ingress_at(transport=SlowToClose([Sleep(9), last]))
        exchange = start(
            ingress.app,
            "POST",
            "/v1/chat/completions",
            body=body_for(Operation.CHAT, stream=True),
            headers=bearer(ALPHA_KEY),
            send_s=7,
        )
        await exchange.finished()
        assert (exchange.broken, exchange.ended) == (None, True)
        assert exchange.chunks == [last.data + DONE]
        assert exchange.violations == []

    run(main)


@both_kinds
@pytest.mark.parametrize("error_s", [10.5, 11, 12.5])
def test_an_error_while_the_early_status_is_being_sent_comes_after_it(
    patient: Streaming, operation: Operation, error_s: float
) -> None:
    async def main() -> None:
        _, exchange = patient(Sleep(error_s), DIED, operation=operation, send_s=2)
        await exchange.finished()
        assert exchange.status == 200
        assert b"replica_failed" in exchange.chunks[-1]
        assert exchange.broken is None or isinstance(exchange.broken, StreamBroken)
        assert exchange.violations == []

    run(main)


@pytest.mark.parametrize("leave", [Exchange.hang_up, Exchange.cancel])
@pytest.mark.parametrize("at_s", [1, 3, 5, 12])
def test_a_client_that_leaves_stops_the_replica_at_any_moment(
    patient: Streaming,
    first: Item,
    last: Item,
    at_s: float,
    leave: Callable[[Exchange], Awaitable[Exchange]],
) -> None:
    async def main() -> None:
        ingress, exchange = patient(Sleep(2), first, Sleep(2), first, Sleep(20), last)
        await asyncio.sleep(at_s)
        await leave(exchange)
        assert asyncio.get_running_loop().time() == at_s
        assert ingress.transport.calls[0].end is End.CANCELLED
        assert [(r.status, r.reason) for r in ingress.records] == [(499, "client_gone")]
        sent = len(exchange.chunks)
        await asyncio.sleep(60)
        assert len(exchange.chunks) == sent
        # Nothing is left that would still send keep-alives.
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main)


def test_a_client_that_leaves_while_it_is_sent_to_stops_the_replica(
    patient: Streaming, first: Item, last: Item
) -> None:
    async def main() -> None:
        ingress, exchange = patient(first, first, last, send_s=5)
        await asyncio.sleep(7)
        await exchange.cancel()
        assert ingress.transport.calls[0].end is End.CLOSED
        assert [record.status for record in ingress.records] == [499]

    run(main)


def test_an_empty_first_item_starts_the_stream_but_sends_no_empty_chunk(
    streaming: Streaming, last: Item
) -> None:
    async def main() -> None:
        _, exchange = streaming(Item(b""), Sleep(2), last)
        await exchange.finished()
        assert exchange.chunks == [last.data + DONE]

    run(main)


def test_a_final_item_without_bytes_still_ends_the_stream(
    streaming: Streaming, first: Item, last: Item
) -> None:
    async def main() -> None:
        for operation in PATHS:
            _, exchange = streaming(first, last._replace(data=b""), operation=operation)
            await exchange.finished()
            assert (exchange.ended, exchange.broken) == (True, None)

    run(main)


@both_kinds
def test_a_client_that_does_not_read_loses_its_slot_when_the_total_deadline_passes(
    streaming: Streaming, operation: Operation, first: Item, last: Item
) -> None:
    async def main() -> None:
        ingress, exchange = streaming(first, first, last, operation=operation, send_s=3600)
        await exchange.finished()
        assert isinstance(exchange.broken, StreamBroken)
        assert [(r.status, r.reason) for r in ingress.records] == [(499, "slow_client")]
        assert asyncio.get_running_loop().time() < 70  # total_s is 60
        assert [call.end for call in ingress.transport.calls] == [End.CLOSED]

    run(main)
