import json
from collections.abc import Callable
from contextlib import aclosing

import pytest

from modelyard.config.table import parse_table
from modelyard.contract.answer_id import read
from modelyard.contract.envelope import Failure, Item
from modelyard.contract.errors import (
    Forbidden,
    InvalidRequest,
    NotFound,
    Overloaded,
    ReplicaFailed,
    RequestError,
    Unauthenticated,
)
from modelyard.contract.operations import Operation
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.routing.fleet import Fleet
from modelyard.tenancy.claim import verify
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    EVALUATOR_KEY,
    SECRET,
    InMemoryIngress,
    post,
    table_record,
)
from modelyard.testing.scripted_transport import End, ScriptedTransport

Prepare = Callable[..., Prepared]
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
FULL = Failure("overloaded", "full: later", reason="queue_full", retry_after_s=3.0)


async def streamed(ingress: InMemoryIngress, prepared: Prepared) -> list[Item]:
    async with aclosing(ingress.pipeline.stream(prepared)) as items:
        return [item async for item in items]


async def test_a_unary_answer_is_given_and_logged_once(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([unary])
    assert await ingress.pipeline.call(prepare(ingress.pipeline)) == unary
    (record,) = ingress.records
    assert (record.status, record.code, record.reason) == (200, "ok", "")
    assert (record.input_tokens, record.output_tokens, record.attempt) == (7, 2, 1)
    assert ingress.transport.calls[0].end is End.COMPLETE


async def test_a_streamed_answer_is_given_and_logged_once(
    prepare: Prepare, first: Item, last: Item
) -> None:
    ingress = InMemoryIngress([first, last])
    assert await streamed(ingress, prepare(ingress.pipeline, stream=True)) == [first, last]
    (record,) = ingress.records
    assert (record.status, record.code, record.finish_reason) == (200, "ok", "length")
    assert (record.input_tokens, record.output_tokens, record.cached_tokens) == (7, 2, 3)
    assert record.stream


async def test_what_follows_the_final_item_is_not_waited_for(
    prepare: Prepare, first: Item, last: Item
) -> None:
    ingress = InMemoryIngress([last, first])
    assert await streamed(ingress, prepare(ingress.pipeline, stream=True)) == [last]
    assert ingress.transport.calls[0].sent == 1


async def test_the_envelope_holds_what_a_shell_needs_and_no_key(
    prepare: Prepare, unary: Item
) -> None:
    ingress = InMemoryIngress([unary])
    prepared = prepare(
        ingress.pipeline, headers={"traceparent": TRACE}, temperature=0.5, colour="red"
    )
    await ingress.pipeline.call(prepared)
    (call,) = ingress.transport.calls
    sent = call.envelope
    assert call.cell.app == "gen@1.0.0"
    assert verify(sent.claim, SECRET).tenant == "alpha"
    assert (sent.version, sent.operation, sent.model_alias) == ("gen@1.0.0", "chat", "chat")
    assert (sent.request_id, sent.traceparent, sent.attempt) == ("r-1", TRACE, 1)
    assert (sent.band, sent.stream) == ("interactive", False)
    assert 59_000 < sent.budget_ms <= 60_000
    assert ALPHA_KEY not in repr(sent)
    assert json.loads(sent.body) == {
        "messages": [{"role": "user", "content": "a very private prompt"}],
        "max_completion_tokens": 256,
        "temperature": 0.5,
    }


async def test_the_answers_id_is_verifiable_by_its_tenant(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([unary])
    prepared = prepare(ingress.pipeline)
    answer_id = prepared.envelope.answer_id
    assert ingress.pipeline.fleet.pool(read(answer_id, "alpha", SECRET).version).is_ready
    with pytest.raises(InvalidRequest):
        read(answer_id, "beta", SECRET)
    assert prepared.record.answer_id == answer_id
    await ingress.pipeline.call(prepared)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_log_holds_metadata_and_no_text(
    prepare: Prepare, first: Item, last: Item, unary: Item, stream: bool
) -> None:
    ingress = InMemoryIngress([first, last] if stream else [unary])
    prepared = prepare(ingress.pipeline, stream=stream, colour="red", **{"a private name": 1})
    if stream:
        await streamed(ingress, prepared)
    else:
        await ingress.pipeline.call(prepared)
    line = ingress.records[0].line()
    assert "private" not in line
    record = json.loads(line)
    assert record.pop("ttft_ms") >= 0
    assert record.pop("duration_ms") >= 0
    assert record.pop("answer_id")
    assert len(record.pop("conversation")) == 32
    assert record.pop("ts")
    assert record.pop("finish_reason") == ("length" if stream else "stop")
    assert record.pop("cached_tokens") == (3 if stream else 0)
    assert record == {
        "request_id": "r-1",
        "route": "/v1/chat/completions",
        "tenant": "alpha",
        "key_id": "alpha-1",
        "tier": "paid",
        "model": "chat",
        "version": "gen@1.0.0",
        "arm": "stable",
        "stream": stream,
        "status": 200,
        "code": "ok",
        "input_tokens": 7,
        "output_tokens": 2,
        "attempt": 1,
        "ignored_fields": ["colour"],
    }


async def test_a_failure_of_a_unary_call_is_its_error(prepare: Prepare) -> None:
    ingress = InMemoryIngress([FULL])
    with pytest.raises(Overloaded) as caught:
        await ingress.pipeline.call(prepare(ingress.pipeline))
    assert (caught.value.retry_after_s, caught.value.reason) == (3.0, "queue_full")
    (record,) = ingress.records
    assert (record.status, record.code, record.reason) == (503, "overloaded", "queue_full")


@pytest.mark.parametrize("sent", [0, 1])
async def test_a_failure_in_a_stream_is_raised_where_it_happened(
    prepare: Prepare, first: Item, sent: int
) -> None:
    ingress = InMemoryIngress([*[first] * sent, FULL])
    items = ingress.pipeline.stream(prepare(ingress.pipeline))
    assert [await anext(items) for _ in range(sent)] == [first] * sent
    with pytest.raises(Overloaded):
        await anext(items)
    (record,) = ingress.records
    assert (record.status, record.code, record.output_tokens) == (503, "overloaded", sent)


@pytest.mark.parametrize("sent", [0, 2])
async def test_a_stream_that_ends_without_a_final_item_has_failed(
    prepare: Prepare, first: Item, sent: int
) -> None:
    ingress = InMemoryIngress([first] * sent)
    with pytest.raises(ReplicaFailed, match="early"):
        await streamed(ingress, prepare(ingress.pipeline))
    (record,) = ingress.records
    assert (record.status, record.reason) == (502, "incomplete")


async def test_a_unary_answer_that_is_not_final_has_failed(prepare: Prepare, first: Item) -> None:
    ingress = InMemoryIngress([first])
    with pytest.raises(ReplicaFailed):
        await ingress.pipeline.call(prepare(ingress.pipeline))
    assert [record.status for record in ingress.records] == [502]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_bug_is_an_internal_error_that_leaks_nothing(
    prepare: Prepare, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    ingress = InMemoryIngress([LookupError("details")])
    prepared = prepare(ingress.pipeline)
    with pytest.raises(RequestError) as caught:
        await (streamed(ingress, prepared) if stream else ingress.pipeline.call(prepared))
    assert (caught.value.code, caught.value.status) == ("internal", 500)
    assert "details" not in caught.value.message
    assert "r-1" in caught.value.message
    assert [(record.status, record.code) for record in ingress.records] == [(500, "internal")]
    assert "details" in caplog.text


@pytest.mark.parametrize(
    ("key", "changes", "error"),
    [
        ("my_x-1_unknown-unknown-unknown", {}, Unauthenticated),
        (BETA_KEY, {}, Forbidden),
        (ALPHA_KEY, {"model": "gone"}, NotFound),
        (ALPHA_KEY, {"model": "intent"}, InvalidRequest),
        (ALPHA_KEY, {"model": "x" * 300}, InvalidRequest),
        (ALPHA_KEY, {"max_tokens": 10**6}, InvalidRequest),
        (ALPHA_KEY, {"messages": []}, InvalidRequest),
        (EVALUATOR_KEY, {"model": "gen@"}, NotFound),
    ],
)
def test_what_can_be_refused_early_reaches_no_replica(
    prepare: Prepare, key: str, changes: dict[str, object], error: type[RequestError]
) -> None:
    ingress = InMemoryIngress()
    with pytest.raises(error):
        prepare(ingress.pipeline, key=key, **changes)
    assert ingress.transport.calls == []


async def test_an_evaluator_may_ask_for_a_version(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([unary])
    ingress.fleet.update([post("gen@2.0.0")])
    await ingress.pipeline.call(prepare(ingress.pipeline, key=EVALUATOR_KEY, model="gen@2.0.0"))
    assert ingress.transport.calls[0].cell.app == "gen@2.0.0"


def test_without_a_table_every_caller_is_told_to_come_back(prepare: Prepare) -> None:
    pipeline = Pipeline(SECRET, ScriptedTransport(), Fleet(), lambda record: None)
    with pytest.raises(Overloaded) as caught:
        prepare(pipeline)
    assert (caught.value.reason, caught.value.retry_after_s) == ("starting", 1)


async def test_a_new_table_counts_from_the_next_request_on(prepare: Prepare, unary: Item) -> None:
    ingress = InMemoryIngress([unary])
    prepared = prepare(ingress.pipeline)
    ingress.pipeline.adopt(parse_table(table_record(keys=[])))
    assert await ingress.pipeline.call(prepared) == unary
    with pytest.raises(Unauthenticated):
        prepare(ingress.pipeline)


async def test_the_prompt_is_in_the_envelope_of_every_operation(
    prepare: Prepare, unary: Item
) -> None:
    for operation in Operation:
        ingress = InMemoryIngress([unary])
        await ingress.pipeline.call(prepare(ingress.pipeline, operation))
        assert b"a very private prompt" in ingress.transport.calls[0].envelope.body
