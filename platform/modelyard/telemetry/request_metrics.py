"""What an ingress counts of its requests: nothing on the way but a gap a streamed item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import Metric

from modelyard.telemetry import families
from modelyard.telemetry.histogram import Histogram
from modelyard.telemetry.request_log import RequestRecord
from modelyard.telemetry.top_n import TopN

TOP_TENANTS: Final = 20
_NOT_REJECTED: Final = 499  # a client that left was not refused

Served = tuple[str, str, str, str]  # model, version, arm, tier


class _PerServed:
    """The counters of one (model, version, arm, tier), looked up once a request."""

    __slots__ = ("cached", "durations", "first_token", "input", "inter_token", "output")

    def __init__(self) -> None:
        self.first_token = Histogram(families.TTFT_EDGES)
        self.inter_token = Histogram(families.ITL_EDGES)
        self.durations: dict[str, Histogram] = {}
        self.input = self.cached = self.output = 0


class Gaps:
    """The time between the tokens of one stream."""

    __slots__ = ("_at", "_histogram")

    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram
        self._at = 0.0

    def item(self, tokens: int, now: float) -> None:
        """An item arrived. One without tokens ends nothing; the first has no gap before it.

        Several tokens in one item came evenly, as far as anybody can tell.
        """
        if tokens:
            if self._at:
                self._histogram.observe((now - self._at) / tokens, tokens)
            self._at = now


class RequestMetrics:
    """The request families of one ingress process. A prometheus_client collector.

    Plain dictionaries and ints, turned into samples when Prometheus asks: prometheus_client's own
    counters take a lock and a label lookup each. Read from a thread: `list(d.items())` is one step
    for the interpreter.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._requests: dict[tuple[str, ...], int] = {}
        self._rejected: dict[tuple[str, ...], int] = {}
        self._retries: dict[tuple[str, ...], int] = {}
        self._degraded: dict[tuple[str, ...], int] = {}
        self._waits: dict[tuple[str, ...], Histogram] = {}
        self._served: dict[Served, _PerServed] = {}
        self._tenants = TopN(TOP_TENANTS, now())

    def gaps(self, record: RequestRecord) -> Gaps:
        """For a stream that is about to begin."""
        return Gaps(self._of(record).inter_token)

    def request_done(self, record: RequestRecord) -> None:
        """Count a request whose books have just been closed."""
        # An alias that led nowhere is whatever a stranger typed: it must not become a label.
        model = record.model if record.version else ""
        version, tier, code = record.version, record.tier, record.code
        _add(self._requests, (model, version, record.arm, record.route, tier, code))
        if _is_rejected(record):
            _add(self._rejected, (model, version, tier, code, record.reason or code))
        if record.attempt > 1:
            _add(self._retries, (model, version), record.attempt - 1)
        if record.queued_ms is not None:
            key = (model, version, tier)
            if (waits := self._waits.get(key)) is None:
                waits = self._waits[key] = Histogram(families.WAIT_EDGES)
            waits.observe(record.queued_ms / 1000)
        if record.degraded:
            kind = record.degraded.partition("=")[0]
            _add(self._degraded, (model, version, tier, kind))
        if record.version:
            self._count_served(record, code)

    def collect(self) -> Iterator[Metric]:
        self._tenants.review(self._now())
        yield families.REQUESTS.metric(list(self._requests.items()))
        yield families.REJECTED.metric(list(self._rejected.items()))
        yield families.RETRIES.metric(list(self._retries.items()))
        yield families.DEGRADED.metric(list(self._degraded.items()))
        yield families.QUEUE_WAIT.histogram(list(self._waits.items()))
        served = list(self._served.items())
        yield families.FIRST_TOKEN.histogram((key, one.first_token) for key, one in served)
        yield families.INTER_TOKEN.histogram((key, one.inter_token) for key, one in served)
        yield families.DURATION.histogram(
            ((*key, code), held)
            for key, one in served
            for code, held in list(one.durations.items())
        )
        yield families.TOKENS.metric(
            ((*key, direction), getattr(one, direction))
            for key, one in served
            for direction in ("input", "cached", "output")
        )
        yield families.TENANT_TOKENS.metric(
            ((tenant, direction), amount)
            for tenant, amounts in self._tenants.amounts().items()
            for direction, amount in zip(("input", "output"), amounts, strict=True)
        )

    def _count_served(self, record: RequestRecord, code: str) -> None:
        one = self._of(record)
        if record.ttft_ms is not None:
            one.first_token.observe(record.ttft_ms / 1000)
        duration = one.durations.get(code)
        if duration is None:
            duration = one.durations[code] = Histogram(families.DURATION_EDGES)
        duration.observe(record.duration_ms / 1000)
        one.input += record.input_tokens
        one.cached += record.cached_tokens
        one.output += record.output_tokens
        if record.tenant:
            self._tenants.add(record.tenant, (record.input_tokens, record.output_tokens))

    def _of(self, record: RequestRecord) -> _PerServed:
        key = (record.model, record.version, record.arm, record.tier)
        one = self._served.get(key)
        if one is None:
            one = self._served[key] = _PerServed()
        return one


def _is_rejected(record: RequestRecord) -> bool:
    status = record.status
    refused = 400 <= status < 500 and status != _NOT_REJECTED
    return record.ttft_ms is None and (refused or status == 503)


def _add(counts: dict[tuple[str, ...], int], key: tuple[str, ...], amount: int = 1) -> None:
    counts[key] = counts.get(key, 0) + amount
