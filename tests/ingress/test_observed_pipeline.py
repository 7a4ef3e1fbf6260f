"""The pipeline with telemetry on: what is counted, and the tree of a traced request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Item
from modelyard.contract.errors import RequestError
from modelyard.contract.operations import Operation
from modelyard.ingress.prepared import Prepared
from modelyard.telemetry.request_metrics import RequestMetrics
from modelyard.telemetry.request_observer import RequestObserver
from modelyard.telemetry.tracing import Tracing
from modelyard.testing.in_memory import ALPHA_KEY, InMemoryIngress, bearer, table_record

SERVED = {"model": "chat", "version": "gen@1.0.0", "arm": "stable", "tier": "paid"}
ROUTE = {"route": "/v1/chat/completions"}


class Observed:
    """An ingress whose books tell an observer."""

    def __init__(self, ingress: InMemoryIngress) -> None:
        self._exporter = InMemorySpanExporter()
        self._tracing = Tracing(self._exporter, 1.0, "ingress", "i1")
        metrics = RequestMetrics(lambda: 0.0)
        self.ingress = ingress
        self.registry = CollectorRegistry()
        self.registry.register(metrics)
        ingress.pipeline.books._observer = RequestObserver(metrics, self._tracing)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"modelyard_{name}", labels)

    def spans(self) -> dict[str, ReadableSpan]:
        self._tracing.close()
        return {span.name: span for span in self._exporter.get_finished_spans()}


async def drained(items: AsyncGenerator[Item]) -> int:
    async with aclosing(items):
        return len([item async for item in items])


async def posted(observed: Observed, body: dict[str, Any]) -> int:
    transport = httpx.ASGITransport(observed.ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        answer = await http.post("/v1/chat/completions", json=body, headers=bearer(ALPHA_KEY))
        return answer.status_code


async def test_a_stream_makes_one_tree_and_is_counted_once(
    ingress_at: Callable[..., InMemoryIngress],
    body_for: Callable[..., dict[str, Any]],
    first: Item,
    last: Item,
) -> None:
    observed = Observed(ingress_at([first, last]))
    assert await posted(observed, body_for(Operation.CHAT, stream=True)) == 200
    assert observed.value("requests_total", **SERVED, **ROUTE, code="ok") == 1
    assert observed.value("time_to_first_token_seconds_count", **SERVED) == 1
    assert observed.value("inter_token_latency_seconds_count", **SERVED) == 1
    assert observed.value("tokens_total", **SERVED, direction="output") == 2
    spans = observed.spans()
    stages = {"authenticate", "read_body", "resolve", "dispatch", "stream"}
    assert spans.keys() == stages | {"request"}
    root = spans["request"]
    assert root.parent is None
    context = root.get_span_context()
    assert context is not None
    assert all(spans[stage].parent == context for stage in stages)
    [call] = observed.ingress.transport.calls
    assert call.envelope.traceparent is not None
    assert call.envelope.traceparent.startswith(
        f"00-{context.trace_id:032x}-{context.span_id:016x}-"
    )
    said: dict[str, Any] = dict(root.attributes or {})
    assert said["tenant"] == "alpha"
    assert (said["input_tokens"], said["output_tokens"]) == (7, 2)
    assert "private" not in str([dict(span.attributes or {}) for span in spans.values()])


async def test_a_request_without_quota_ends_at_that_stage(
    ingress_at: Callable[..., InMemoryIngress], body_for: Callable[..., dict[str, Any]]
) -> None:
    """No control has given this ingress a part of the quota."""
    quotas = {"alpha": {"requests_per_min": 60}}
    observed = Observed(ingress_at(table=parse_table(table_record(quotas=quotas))))
    assert await posted(observed, body_for(Operation.CHAT)) == 429
    [rejected] = [
        sample
        for family in observed.registry.collect()
        for sample in family.samples
        if sample.name == "modelyard_requests_rejected_total"
    ]
    assert rejected.labels["code"] == "rate_limited"
    assert rejected.value == 1
    spans = observed.spans()
    assert "quota" in spans
    assert "dispatch" not in spans


async def test_a_unary_answer_has_no_gaps(
    ingress_at: Callable[..., InMemoryIngress], prepare: Callable[..., Prepared], unary: Item
) -> None:
    observed = Observed(ingress_at([unary]))
    pipeline = observed.ingress.pipeline
    await pipeline.call(prepare(pipeline))
    assert observed.value("requests_total", **SERVED, **ROUTE, code="ok") == 1
    assert observed.value("inter_token_latency_seconds_count", **SERVED) == 0
    assert "stream" not in observed.spans()


async def test_a_stream_that_fails_ends_its_trace_with_our_code(
    ingress_at: Callable[..., InMemoryIngress], prepare: Callable[..., Prepared], first: Item
) -> None:
    observed = Observed(ingress_at([first]))
    pipeline = observed.ingress.pipeline
    with pytest.raises(RequestError):
        await drained(pipeline.stream(prepare(pipeline, stream=True)))
    code = "replica_failed"
    assert observed.value("requests_total", **SERVED, **ROUTE, code=code) == 1
    assert observed.value("request_duration_seconds_count", **SERVED, code=code) == 1
    assert observed.spans()["request"].status.description == code


async def test_a_client_that_leaves_is_counted_and_is_no_error(
    ingress_at: Callable[..., InMemoryIngress], prepare: Callable[..., Prepared], first: Item
) -> None:
    observed = Observed(ingress_at([first, asyncio.Event()]))
    pipeline = observed.ingress.pipeline
    stream = pipeline.stream(prepare(pipeline, stream=True))
    await anext(stream)
    await stream.aclose()
    assert observed.value("requests_total", **SERVED, **ROUTE, code="cancelled") == 1
    assert observed.spans()["request"].status.is_unset
