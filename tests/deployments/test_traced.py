"""A replica's part of a trace, at the door."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from types import SimpleNamespace
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from deployments import traced
from deployments.vllm_engine import engine_stages
from modelyard.contract.envelope import Answer, Envelope, Failure, Item, Usage
from modelyard.telemetry.tracing import Tracing

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
STATS = SimpleNamespace(queued_ts=10.0, scheduled_ts=10.5, first_token_ts=11.0, last_token_ts=13.0)


def envelope(traceparent: str | None) -> Envelope:
    fields: dict[str, Any] = {"claim": "", "version": "gen@1", "operation": "chat", "body": b"{}"}
    fields |= {"stream": True, "budget_ms": 1000, "band": "interactive", "request_id": "r-1"}
    return Envelope(**fields, answer_id="a", model_alias="m", traceparent=traceparent)


class Exported:
    """A replica's Tracing and what it exported."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracing = Tracing(self._exporter, 0.0, "gen@1", "r1")

    def spans(self) -> dict[str, ReadableSpan]:
        self.tracing.close()
        return {span.name: span for span in self._exporter.get_finished_spans()}


async def working(_: Envelope) -> Answer:
    traced.enter("engine")
    traced.add(engine_stages(STATS))
    return Item(b"{}", 0, Usage(7, 3))


async def test_a_call_shows_its_stages_below_the_ingress() -> None:
    exported = Exported()
    await traced.traced_call(exported.tracing, envelope(PARENT), working)
    spans = exported.spans()
    assert spans.keys() == {"shell", "admit", "engine", "queue", "prefill", "decode"}
    shell = spans["shell"]
    assert shell.parent is not None
    assert f"{shell.parent.span_id:016x}" in PARENT
    assert dict(shell.attributes or {})["output_tokens"] == 3
    decode = spans["decode"]
    assert decode.end_time is not None
    assert decode.start_time is not None
    assert decode.end_time - decode.start_time == 2_000_000_000


async def test_a_stream_that_fails_says_our_code() -> None:
    async def failing(_: Envelope) -> AsyncGenerator[Answer]:
        yield Item(b"data", 1)
        yield Failure("overloaded", "the queue is full")

    exported = Exported()
    stream = traced.traced_stream(exported.tracing, envelope(PARENT), failing)
    assert len([item async for item in stream]) == 2
    assert exported.spans()["shell"].status.description == "overloaded"


async def test_what_the_ingress_does_not_trace_is_not_traced() -> None:
    exported = Exported()
    assert await traced.traced_call(exported.tracing, envelope(None), working)
    assert exported.spans() == {}


def test_without_statistics_there_are_no_engine_stages() -> None:
    assert list(engine_stages(None)) == []
    assert list(engine_stages(SimpleNamespace(queued_ts=0.0))) == []
