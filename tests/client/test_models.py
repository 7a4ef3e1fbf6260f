"""Models over the real pipeline of an ingress in memory; only the replicas are scripted."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from modelyard.client import Chunk, Models, RetryPolicy
from modelyard.config.table import parse_table
from modelyard.contract import native
from modelyard.contract.envelope import Failure, Item, Usage
from modelyard.contract.errors import (
    BodyTooLarge,
    ConfigError,
    Forbidden,
    InvalidRequest,
    NotFound,
    Overloaded,
    ReplicaFailed,
    RequestError,
    Unauthenticated,
)
from modelyard.contract.reply import Reply
from modelyard.ingress.by_handle import ByHandle
from modelyard.testing.in_memory import ALPHA_KEY, BETA_KEY, InMemoryIngress, table_record
from modelyard.testing.scripted_transport import End, Step

USAGE = Usage(7, 2, "length")
ONCE = RetryPolicy(max_attempts=1)


def unary(record: Any) -> list[Step]:
    return [Item(json.dumps(record).encode(), 0, USAGE)]


def models_over(ingress: InMemoryIngress, key: str = ALPHA_KEY, **options: Any) -> Models:
    return Models(key, ingress=ByHandle(ingress.pipeline), **({"retry": ONCE} | options))


def sent(ingress: InMemoryIngress) -> dict[str, Any]:
    """The body of the one request that reached a replica."""
    [call] = ingress.transport.calls
    return dict(json.loads(call.envelope.body))


async def test_generate_answers_text_usage_and_version() -> None:
    ingress = InMemoryIngress([Item(native.answer("a", "gen@1.0.0", "Hi.", USAGE), 0, USAGE)])
    answer = await models_over(ingress).generate("chat", "hello", max_output_tokens=2, top_k=5)
    assert (answer.text, answer.finish_reason, answer.usage) == ("Hi.", "length", USAGE)
    assert (answer.model_version, answer.id) == ("gen@1.0.0", ingress.records[0].answer_id)
    body = sent(ingress)
    assert body["messages"] == [{"role": "user", "content": "hello"}]
    assert (body["max_output_tokens"], body["top_k"]) == (2, 5)


async def test_a_conversation_keeps_its_id_and_a_single_call_gets_its_own() -> None:
    script: list[Step] = [Item(native.answer("a", "gen@1.0.0", "Hi.", USAGE), 0, USAGE)]
    ingress = InMemoryIngress(script, script, script)
    models = models_over(ingress)
    await models.generate("chat", "a", max_output_tokens=2, conversation_id="c-1")
    await models.generate("chat", [{"role": "user", "content": "b"}], max_output_tokens=2)
    await models.generate("chat", "b", max_output_tokens=2)
    ids = [json.loads(c.envelope.body)["conversation_id"] for c in ingress.transport.calls]
    assert ids[0] == "c-1"
    assert len(set(ids)) == 3


async def chunks_of(stream: AsyncGenerator[Chunk]) -> tuple[list[Chunk], RequestError | None]:
    chunks: list[Chunk] = []
    try:
        async for chunk in stream:
            chunks.append(chunk)
    except RequestError as error:
        return chunks, error
    return chunks, None


async def test_a_stream_is_deltas_and_then_the_whole_answer() -> None:
    both = native.delta_event(0, " two") + native.delta_event(0, "\n\nthree")
    done = native.done_event("gen@1.0.0", USAGE)
    ingress = InMemoryIngress(
        [Item(native.delta_event(0, "one"), 1), Item(both, 2), Item(done, 0, USAGE)]
    )
    chunks, error = await chunks_of(models_over(ingress).stream("chat", "x", max_output_tokens=9))
    assert error is None
    assert [chunk.text for chunk in chunks] == ["one", " two", "\n\nthree", ""]
    final = chunks[-1].final
    assert final is not None
    assert (final.text, final.usage, final.model_version) == (
        "one two\n\nthree",
        USAGE,
        "gen@1.0.0",
    )
    assert all(chunk.final is None for chunk in chunks[:-1])


async def test_the_last_item_may_hold_text_too() -> None:
    last = native.delta_event(0, "one") + native.done_event("gen@1.0.0", USAGE)
    ingress = InMemoryIngress([Item(last, 1, USAGE)])
    chunks, _ = await chunks_of(models_over(ingress).stream("chat", "x", max_output_tokens=9))
    assert [chunk.text for chunk in chunks] == ["one", ""]


async def test_a_failed_stream_raises_with_the_text_that_had_arrived() -> None:
    ingress = InMemoryIngress(
        [Item(native.delta_event(0, "so far"), 1), ReplicaFailed("it died").failure()]
    )
    models = models_over(ingress, retry=RetryPolicy())
    chunks, error = await chunks_of(models.stream("chat", "x", max_output_tokens=9))
    assert [chunk.text for chunk in chunks] == ["so far"]
    assert isinstance(error, ReplicaFailed)
    assert error.partial == "so far"
    assert len(ingress.transport.calls) == 1


async def test_a_stream_that_is_left_stops_the_model_and_is_logged() -> None:
    delta = Item(native.delta_event(0, "a"), 1)
    ingress = InMemoryIngress([delta, delta, delta])
    async with aclosing(models_over(ingress).stream("chat", "x", max_output_tokens=9)) as stream:
        await anext(stream)
    assert ingress.transport.calls[0].end is End.CLOSED
    assert ingress.records[0].code == "cancelled"


async def test_embed_answers_one_row_a_text() -> None:
    vectors = [[0.25, -1.0, 3.5], [1.0, 0.0, -0.5]]
    data = [
        {"index": i, "embedding": base64.b64encode(struct.pack("<3f", *vector)).decode()}
        for i, vector in enumerate(vectors)
    ]
    ingress = InMemoryIngress(unary({"data": data}))
    texts = np.array(["a", "b"], dtype=object)  # a column of a Ray Data batch
    answer = await models_over(ingress).embed("team/embed", texts, truncate_prompt_tokens=-1)
    assert answer.vectors.dtype == np.float32
    assert answer.vectors.tolist() == vectors
    assert sent(ingress)["input"] == ["a", "b"]
    assert sent(ingress)["encoding_format"] == "base64"
    assert sent(ingress)["truncate_prompt_tokens"] == -1


async def test_classify_answers_one_label_a_text() -> None:
    data = [{"index": 0, "label": "yes", "probs": [0.25, 0.75], "num_classes": 2}]
    answer = await models_over(InMemoryIngress(unary({"data": data}))).classify("intent", ["a"])
    assert answer.labels == ["yes"]
    assert answer.probabilities.tolist() == [[0.25, 0.75]]


async def test_rerank_answers_places_and_scores_best_first() -> None:
    results = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]
    ingress = InMemoryIngress(unary({"results": results}))
    answer = await models_over(ingress).rerank("rerank", "q", ["a", "b"], top_n=2)
    assert (answer.order, answer.scores) == ([1, 0], [0.9, 0.2])
    assert sent(ingress)["return_documents"] is False


@pytest.mark.parametrize(
    ("key", "model", "text", "raised"),
    [
        ("my_wrong_key", "team/embed", "a", Unauthenticated),
        (BETA_KEY, "intent", "a", Forbidden),
        (ALPHA_KEY, "nothing", "a", NotFound),
        (ALPHA_KEY, "chat", "a", InvalidRequest),
        (ALPHA_KEY, "intent", "\ud800", InvalidRequest),
    ],
)
async def test_a_refusal_is_raised_as_over_http(
    key: str, model: str, text: str, raised: type[RequestError]
) -> None:
    with pytest.raises(raised):
        await models_over(InMemoryIngress(), key).classify(model, [text])


async def test_the_body_limit_is_that_of_http() -> None:
    ingress = InMemoryIngress(table=parse_table(table_record(max_body_bytes=2000)))
    with pytest.raises(InvalidRequest, match="larger than 2000 bytes"):
        await models_over(ingress).classify("intent", ["x" * 2000])
    assert ingress.records[0].status == BodyTooLarge.status


async def test_every_request_is_logged_with_its_tenant_and_its_way_in() -> None:
    ingress = InMemoryIngress(unary({"data": []}), [Failure("overloaded", "full")])
    models = models_over(ingress)
    await models.classify("intent", ["a"])
    with pytest.raises(Overloaded):
        await models.classify("intent", ["a"])
    with pytest.raises(NotFound):
        await models.classify("nothing", ["a"])
    assert [(r.route, r.tenant, r.status) for r in ingress.records] == [
        ("handle/classify", "alpha", 200),
        ("handle/classify", "alpha", 503),
        ("handle/classify", "alpha", 404),
    ]


@pytest.mark.parametrize("texts", ["hello", b"hello", None])
async def test_one_bare_text_is_not_sent_as_its_letters(texts: Any) -> None:
    ingress = InMemoryIngress(unary({"data": []}))
    models = models_over(ingress)
    for call, param in (
        (models.embed("embed", texts), "input"),
        (models.classify("intent", texts), "input"),
        (models.rerank("rank", "a query", texts), "documents"),
    ):
        with pytest.raises(InvalidRequest) as caught:
            await call
        assert caught.value.param == param
    assert ingress.transport.calls == []


@pytest.mark.parametrize("messages", [["hello"], [3], None])
async def test_messages_that_are_none_are_a_refused_request(messages: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        await models_over(InMemoryIngress([])).generate("chat", messages, max_output_tokens=1)
    assert caught.value.param == "messages"


def test_a_client_without_places_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_in_flight is 0"):
        Models(ALPHA_KEY, max_in_flight=0)


async def test_a_reply_is_what_http_says_in_headers() -> None:
    ingress = InMemoryIngress(unary({"data": []}))
    answer = await ByHandle(ingress.pipeline).ask(
        ALPHA_KEY, "classify", b'{"model": "intent", "input": ["a"], "odd": 1}', {}
    )
    assert isinstance(answer, Reply)
    assert (answer.model_version, answer.arm, answer.ignored) == ("cls@1.0.0", "stable", ("odd",))


@pytest.mark.parametrize("deadline_s", [0, -1, "1", float("nan")])
async def test_a_deadline_that_is_none_is_refused_before_anything_is_sent(deadline_s: Any) -> None:
    ingress = InMemoryIngress()
    with pytest.raises(InvalidRequest, match="deadline_s"):
        await models_over(ingress).embed("team/embed", ["x"], deadline_s=deadline_s)
    assert ingress.transport.calls == []


def test_a_retry_policy_without_an_attempt_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_attempts"):
        RetryPolicy(max_attempts=0)
