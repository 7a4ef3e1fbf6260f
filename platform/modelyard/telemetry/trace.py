"""One process's part of a traced request: a span, and one below it for each stage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

    from modelyard.telemetry.request_log import RequestRecord

Attributes = dict[str, str | int | float | bool]


class Trace:
    """Held by a sampled request alone: what is not traced holds None, and each stage tests that.

    Stages follow each other: entering one ends that before it. Their spans are made at the end,
    when the caller has his answer.
    """

    __slots__ = ("_attributes", "_began", "_ended", "_parts", "_span", "_tracer", "traceparent")

    def __init__(self, tracer: Tracer, span: Span) -> None:
        context = span.get_span_context()
        self._tracer = tracer
        self._span = span
        self._began: list[tuple[str, int]] = []
        self._parts: list[tuple[str, int, int]] = []
        self._ended = False
        # For those that are called next: their spans hang below this one.
        self.traceparent = (
            f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"
        )

    def enter(self, stage: str) -> None:
        self._began.append((stage, time.time_ns()))

    def add(self, stage: str, start_ns: int, end_ns: int) -> None:
        """A stage that somebody else measured, in nanoseconds since 1970."""
        self._parts.append((stage, start_ns, end_ns))

    def end(self, attributes: Attributes, error: str = "") -> None:
        """Make the spans. Only the first call counts. error: our code for what went wrong."""
        if self._ended:
            return
        self._ended = True
        from opentelemetry.trace import StatusCode, set_span_in_context

        end_ns = time.time_ns()
        below = set_span_in_context(self._span)
        ends = (*(at for _, at in self._began[1:]), end_ns)
        stages = [(name, at, ends[place]) for place, (name, at) in enumerate(self._began)]
        for name, at, until in stages + self._parts:
            self._tracer.start_span(name, below, start_time=at).end(until)
        self._span.set_attributes({key: one for key, one in attributes.items() if one != ""})
        if error:
            self._span.set_status(StatusCode.ERROR, error)
        self._span.end(end_ns)


def request_attributes(record: RequestRecord) -> Attributes:
    """What the root span says. The tenant is in traces; a prompt or an answer never is."""
    return {
        "request_id": record.request_id,
        "answer_id": record.answer_id,
        "route": record.route,
        "tenant": record.tenant,
        "tier": record.tier,
        "model": record.model,
        "version": record.version,
        "arm": record.arm,
        "stream": record.stream,
        "status": record.status,
        "code": record.code,
        "reason": record.reason,
        "finish_reason": record.finish_reason,
        "input_tokens": record.input_tokens,
        "cached_tokens": record.cached_tokens,
        "output_tokens": record.output_tokens,
        "attempts": record.attempt,
    }
