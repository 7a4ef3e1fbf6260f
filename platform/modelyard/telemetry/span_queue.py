"""Spans on their way out: a bounded queue that a thread of its own empties."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterator
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from prometheus_client import Metric
from prometheus_client.registry import Collector

from modelyard.telemetry import families

log = logging.getLogger("modelyard.traces")

MAX_WAITING: Final = 8192
BATCH: Final = 512
EXPORT_EACH_S: Final = 1.0


class SpanQueue(SpanProcessor, Collector):
    """The SDK's BatchSpanProcessor, but one that counts what it drops and never wakes a thread
    for a span: the loop that serves pays an append."""

    def __init__(self, exporter: SpanExporter, max_waiting: int = MAX_WAITING) -> None:
        self._exporter = exporter
        self._max_waiting = max_waiting
        self._spans: deque[ReadableSpan] = deque()
        self._failing = False
        self._stop = threading.Event()
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    def on_end(self, span: ReadableSpan) -> None:
        if len(self._spans) >= self._max_waiting:
            self.dropped += 1
        else:
            self._spans.append(span)

    def shutdown(self) -> None:
        """Export what is queued and stop. Twice is harmless."""
        self._stop.set()
        self._thread.join()

    def collect(self) -> Iterator[Metric]:
        yield families.SPANS_DROPPED.metric([((), self.dropped)])

    def _run(self) -> None:
        while not self._stop.wait(EXPORT_EACH_S):
            self._drain()
        self._drain()
        self._exporter.shutdown()

    def _drain(self) -> None:
        while self._spans:
            batch = [self._spans.popleft() for _ in range(min(len(self._spans), BATCH))]
            self._export(batch)

    def _export(self, batch: list[ReadableSpan]) -> None:
        cause: object = "the exporter refused them"
        try:
            done = self._exporter.export(batch) is SpanExportResult.SUCCESS
        except Exception as error:  # noqa: BLE001  the edge of a thread: the next batch may do
            done, cause = False, error
        if not done:
            self.dropped += len(batch)
            if not self._failing:
                log.warning("spans are lost, and counted in spans_dropped: %s", cause)
        self._failing = not done
