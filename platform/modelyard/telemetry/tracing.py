"""Traces of a process, when it was told to make any: which requests, and where their spans go."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from modelyard.config.settings import Settings
from modelyard.config.traces import TraceTarget
from modelyard.telemetry.trace import Trace

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.export import SpanExporter

    from modelyard.telemetry.request_log import RequestRecord


class Tracing:
    """One per process. Where traces are off there is none, and the SDK is never imported.

    A request that comes with a W3C traceparent is traced if its caller traces it. Of the others
    `ratio` (0 to 1) is chosen: 0 in a replica, where the ingress has already chosen.
    """

    def __init__(self, exporter: SpanExporter, ratio: float, app: str, replica: str) -> None:
        # Here, and not above: 100 ms and 13 MB that a process without traces does not pay.
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        from modelyard.telemetry.span_queue import SpanQueue

        self.queue = SpanQueue(exporter)
        provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(ratio)),
            resource=Resource({"service.name": "modelyard", "app": app, "replica": replica}),
            shutdown_on_exit=False,
        )
        provider.add_span_processor(self.queue)
        self._tracer = provider.get_tracer("modelyard")

    def begin(self, name: str, traceparent: str | None) -> Trace | None:
        """The trace of one call; None for one that is not sampled."""
        span = self._tracer.start_span(name, _parent(traceparent), start_time=time.time_ns())
        return Trace(self._tracer, span) if span.is_recording() else None

    def begin_request(self, record: RequestRecord) -> None:
        """At the edge. The log and the replicas learn of the trace by the record's traceparent."""
        record.trace = self.begin("request", record.traceparent)
        if record.trace is not None:
            record.traceparent = record.trace.traceparent

    def close(self) -> None:
        """Export what is queued."""
        self.queue.shutdown()


def tracing_of(settings: Settings, app: str, replica: str, *, edge: bool) -> Tracing | None:
    """As MODELYARD_TRACES says; None when it is not set. edge: whether requests begin here."""
    if settings.traces is None:
        return None
    exporter = _exporter(settings.traces, replica)
    return Tracing(exporter, settings.trace_ratio if edge else 0.0, app, replica)


def _exporter(target: TraceTarget, replica: str) -> SpanExporter:
    if target.folder is not None:
        from modelyard.telemetry.span_file import SpanFile

        return SpanFile(target.folder, replica)
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=f"{target.url}/v1/traces")


def _parent(traceparent: str | None) -> Context:
    from opentelemetry.context import Context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if traceparent is None:
        return Context()  # not None, which means whatever span is current
    return TraceContextTextMapPropagator().extract({"traceparent": traceparent}, Context())
