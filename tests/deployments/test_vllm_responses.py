"""What passes between our envelope and vLLM's /v1/responses, without an engine."""

from __future__ import annotations

import json
import warnings
from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from deployments.vllm_responses import answer_json, responses_request, sse_texts
from modelyard.contract.envelope import Envelope
from modelyard.contract.errors import InvalidRequest

OURS = {"model": "gen@1.0.0", "stream": True, "cache_salt": "salt-of-the-tenant"}


@pytest.fixture(scope="module", autouse=True)
def vllm() -> None:
    """Imported once and with its own warnings: they are torch's, which this file is not about."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("VLLM_LOGGING_LEVEL", "ERROR")
        import vllm.entrypoints.openai.responses.protocol  # noqa: F401


def envelope(**body: Any) -> Envelope:
    return Envelope(
        claim="c",
        version="gen@1.0.0",
        operation="responses",
        body=json.dumps({"input": "hello", "max_output_tokens": 8} | body).encode(),
        stream=True,
        budget_ms=1000,
        band="interactive",
        request_id="r-1",
        answer_id="a-1",
        model_alias="chat",
    )


def test_a_request_has_our_id_and_salt_and_stores_nothing() -> None:
    theirs = {"cache_salt": "mine", "request_id": "mine", "store": True, "model": "other"}
    request = responses_request(envelope(**theirs), OURS)
    assert request.request_id == "resp_a-1"
    assert request.cache_salt == "salt-of-the-tenant"
    assert (request.store, request.stream, request.model) == (False, True, "gen@1.0.0")
    assert (request.input, request.max_output_tokens) == ("hello", 8)


def test_a_wrong_field_is_named_without_vllms_classes() -> None:
    with pytest.raises(InvalidRequest) as caught:
        responses_request(envelope(text={"format": 7}), OURS)
    assert caught.value.param == "text.format"


class Inner(BaseModel):
    model: str = "gen@1.0.0"
    metrics: int = 7


class Event(BaseModel):
    type: str
    response: Inner | None = None


async def told(*events: Event) -> list[str]:
    async def made() -> AsyncGenerator[Event]:
        for event in events:
            yield event

    return [text async for text in sse_texts(made(), "chat")]


async def test_the_beginning_waits_for_the_first_event_of_the_model() -> None:
    kinds = ("response.created", "response.in_progress", "response.output_item.added", "x")
    first, second = await told(*(Event(type=kind) for kind in kinds))
    assert [line for line in first.split("\n") if line.startswith("event")] == [
        "event: response.created",
        "event: response.in_progress",
        "event: response.output_item.added",
    ]
    assert second.startswith("event: x\ndata: ")
    assert second.endswith("}\n\n")


async def test_an_event_with_the_response_has_the_alias_and_not_the_engines_own() -> None:
    [text] = await told(Event(type="response.completed", response=Inner()))
    record = json.loads(text.partition("\ndata: ")[2])
    assert record["response"] == {"model": "chat"}


async def test_leaving_the_events_closes_them() -> None:
    closed = []

    async def made() -> AsyncGenerator[Any]:
        try:
            yield Event(type="x")
            yield Event(type="y")
        finally:
            closed.append(True)

    texts = sse_texts(made(), "chat")
    await anext(texts)
    await texts.aclose()
    assert closed == [True]


def test_a_whole_answer_has_the_alias() -> None:
    def dump(by_alias: bool, exclude: Any) -> str:
        return json.dumps({"model": response.model, "by_alias": by_alias})

    response = SimpleNamespace(model="gen@1.0.0", model_dump_json=dump)
    assert json.loads(answer_json(response, "chat")) == {"model": "chat", "by_alias": True}
