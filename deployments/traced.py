"""A replica's part of a trace, where traces are on. Off, the door passes by."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from contextvars import ContextVar
from typing import Final

from modelyard.contract.envelope import Answer, Envelope, Failure
from modelyard.telemetry.trace import Attributes, Trace
from modelyard.telemetry.tracing import Tracing

# Serve gives each call a task of its own, and so a context.
_trace: Final[ContextVar[Trace | None]] = ContextVar("trace", default=None)


def enter(stage: str) -> None:
    """A stage of this call begins."""
    if (trace := _trace.get()) is not None:
        trace.enter(stage)


def add(stages: Iterable[tuple[str, int, int]]) -> None:
    """Stages measured elsewhere: name, start and end in nanoseconds since 1970."""
    if (trace := _trace.get()) is not None:
        for name, start_ns, end_ns in stages:
            trace.add(name, start_ns, end_ns)


async def traced_call(
    tracing: Tracing, envelope: Envelope, call: Callable[[Envelope], Awaitable[Answer]]
) -> Answer:
    trace = _begun(tracing, envelope)
    answer: Answer | None = None
    try:
        answer = await call(envelope)
        return answer
    finally:
        _end(trace, envelope, answer)


async def traced_stream(
    tracing: Tracing, envelope: Envelope, stream: Callable[[Envelope], AsyncGenerator[Answer]]
) -> AsyncGenerator[Answer]:
    trace = _begun(tracing, envelope)
    answer: Answer | None = None
    try:
        async with aclosing(stream(envelope)) as answers:
            async for answer in answers:
                yield answer
    finally:
        _end(trace, envelope, answer)


def _begun(tracing: Tracing, envelope: Envelope) -> Trace | None:
    # A stray call carries no envelope; the shell says so.
    trace = tracing.begin("shell", getattr(envelope, "traceparent", None))
    if trace is not None:
        _trace.set(trace)
        trace.enter("admit")
    return trace


def _end(trace: Trace | None, envelope: Envelope, last: Answer | None) -> None:
    if trace is None:
        return
    attributes: Attributes = {
        "request_id": envelope.request_id,
        "version": envelope.version,
        "operation": envelope.operation,
        "attempt": envelope.attempt,
    }
    if isinstance(last, Failure):
        trace.end(attributes, last.code)
        return
    if last is not None and last.final is not None:
        attributes["input_tokens"] = last.final.input_tokens
        attributes["output_tokens"] = last.final.output_tokens
        attributes["finish_reason"] = last.final.finish_reason
    trace.end(attributes)
