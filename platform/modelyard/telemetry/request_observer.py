"""What an ingress tells telemetry of each request: when it opens, streams and closes."""

from __future__ import annotations

from modelyard.telemetry.request_log import RequestRecord
from modelyard.telemetry.request_metrics import Gaps, RequestMetrics
from modelyard.telemetry.trace import request_attributes
from modelyard.telemetry.tracing import Tracing


class RequestObserver:
    """One per ingress process. Metrics always, traces where they are on."""

    def __init__(self, metrics: RequestMetrics, tracing: Tracing | None) -> None:
        self._metrics = metrics
        self._tracing = tracing

    def opened(self, record: RequestRecord) -> None:
        if self._tracing is not None:
            self._tracing.begin_request(record)
            record.enter("authenticate")

    def first_item(self, record: RequestRecord) -> Gaps | None:
        """Something arrived from the model. Where more will follow, what to tell of each item."""
        if not record.stream:
            return None
        record.enter("stream")
        return self._metrics.gaps(record)

    def closed(self, record: RequestRecord) -> None:
        self._metrics.request_done(record)
        if record.trace is not None:
            error = "" if record.code in ("ok", "cancelled") else record.code
            record.trace.end(request_attributes(record), error)
