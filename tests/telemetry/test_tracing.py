import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from modelyard.config.settings import Settings
from modelyard.config.traces import TraceTarget
from modelyard.telemetry.request_log import RequestRecord
from modelyard.telemetry.span_queue import SpanQueue
from modelyard.telemetry.tracing import Tracing, tracing_of

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


class Traced:
    """A Tracing and what it exported."""

    def __init__(self, ratio: float = 1.0) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracing = Tracing(self._exporter, ratio, "ingress", "i1")

    def spans(self) -> dict[str, ReadableSpan]:
        self.tracing.close()
        return {span.name: span for span in self._exporter.get_finished_spans()}


@pytest.fixture
def traced() -> Iterator[Traced]:
    made = Traced()
    yield made
    made.tracing.close()


def record(traceparent: str | None = None) -> RequestRecord:
    return RequestRecord("", "r-1", "/v1/generate", traceparent=traceparent)


def ids(span: ReadableSpan) -> tuple[str, str]:
    context = span.get_span_context()
    assert context is not None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def test_a_stage_lasts_until_the_next(traced: Traced) -> None:
    trace = traced.tracing.begin("request", None)
    assert trace is not None
    for stage in ("authenticate", "dispatch", "stream"):
        trace.enter(stage)
    trace.end({"model": "chat", "arm": ""})
    spans = traced.spans()
    root = spans["request"]
    assert dict(root.attributes or {}) == {"model": "chat"}
    for before, after in (("authenticate", "dispatch"), ("dispatch", "stream")):
        assert spans[before].end_time == spans[after].start_time
    assert spans["stream"].end_time == root.end_time
    assert root.start_time is not None
    for stage in ("authenticate", "dispatch", "stream"):
        parent = spans[stage].parent
        assert parent is not None
        assert f"{parent.span_id:016x}" == ids(root)[1]
    assert root.resource.attributes["replica"] == "i1"


def test_the_callers_trace_goes_on(traced: Traced) -> None:
    one = record(f"00-{TRACE}-{PARENT}-01")
    traced.tracing.begin_request(one)
    assert one.trace is not None
    one.trace.end({})
    root = traced.spans()["request"]
    trace_id, span_id = ids(root)
    assert trace_id == TRACE
    assert root.parent is not None
    assert f"{root.parent.span_id:016x}" == PARENT
    assert one.traceparent is not None
    assert one.traceparent.startswith(f"00-{TRACE}-{span_id}-")  # what the replica is told


def test_what_the_caller_does_not_trace_is_not_traced(traced: Traced) -> None:
    given = f"00-{TRACE}-{PARENT}-00"
    one = record(given)
    traced.tracing.begin_request(one)
    assert one.trace is None
    assert one.traceparent == given
    assert traced.spans() == {}


def test_the_ratio_chooses_among_requests_without_a_trace() -> None:
    made = Traced(ratio=0.5)
    chosen = sum(made.tracing.begin("request", None) is not None for _ in range(400))
    assert 100 < chosen < 300
    made.tracing.close()


def test_a_replica_begins_no_trace_and_continues_one() -> None:
    made = Traced(ratio=0.0)
    assert made.tracing.begin("shell", None) is None
    assert made.tracing.begin("shell", f"00-{TRACE}-{PARENT}-01") is not None
    made.tracing.close()


def test_ending_twice_makes_one_span(traced: Traced) -> None:
    trace = traced.tracing.begin("request", None)
    assert trace is not None
    trace.end({}, "overloaded")
    trace.end({})
    span = traced.spans()["request"]
    assert span.status.description == "overloaded"


class Stuck(SpanExporter):
    """A collector that is away."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self._error is not None:
            raise self._error
        return SpanExportResult.FAILURE


@pytest.mark.parametrize("error", [None, OSError("no such host")])
def test_spans_that_cannot_be_exported_are_counted(error: Exception | None) -> None:
    tracing = Tracing(Stuck(error), 1.0, "a", "r")
    trace = tracing.begin("request", None)
    assert trace is not None
    trace.enter("resolve")
    trace.end({})
    tracing.close()
    assert tracing.queue.dropped == 2


def test_a_full_queue_drops_and_counts() -> None:
    exporter = InMemorySpanExporter()
    queue = SpanQueue(exporter, max_waiting=0)
    tracing = Tracing(exporter, 1.0, "a", "r")
    trace = tracing.begin("request", None)
    assert trace is not None
    trace.end({})
    tracing.close()
    [span] = exporter.get_finished_spans()
    queue.on_end(span)
    queue.shutdown()
    assert queue.dropped == 1


def test_a_folder_gets_a_line_a_span(tmp_path: Path) -> None:
    settings = Settings(tmp_path, tmp_path, traces=TraceTarget(folder=tmp_path / "traces"))
    tracing = tracing_of(settings, "ingress", "i1", edge=True)
    assert tracing is not None
    trace = tracing.begin("request", None)
    assert trace is not None
    trace.enter("resolve")
    trace.add("queue", time.time_ns() - 2_000_000, time.time_ns() - 1_000_000)
    trace.end({"tenant": "alpha"})
    tracing.close()
    lines = (tmp_path / "traces" / "spans-i1.jsonl").read_text().splitlines()
    spans: list[dict[str, Any]] = [json.loads(line) for line in lines]
    assert {span["name"] for span in spans} == {"resolve", "queue", "request"}
    assert spans[-1]["attributes"] == {"tenant": "alpha"}


def test_without_traces_there_is_no_tracing_and_no_sdk(tmp_path: Path) -> None:
    assert tracing_of(Settings(tmp_path, tmp_path), "a", "r", edge=True) is None
    code = "import sys, modelyard.ingress.app; print('opentelemetry' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_collector_is_sent_otlp(tmp_path: Path) -> None:
    received: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Collector) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        target = TraceTarget(url=f"http://127.0.0.1:{server.server_port}")
        tracing = tracing_of(Settings(tmp_path, tmp_path, traces=target), "a", "r1", edge=True)
        assert tracing is not None
        trace = tracing.begin("request", None)
        assert trace is not None
        trace.end({})
        tracing.close()
        server.shutdown()
        thread.join()
    [(path, body)] = received
    assert path == "/v1/traces"
    assert b"request" in body
    assert tracing.queue.dropped == 0
