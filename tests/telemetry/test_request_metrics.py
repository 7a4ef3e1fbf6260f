from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from modelyard.telemetry.request_log import RequestRecord
from modelyard.telemetry.request_metrics import RequestMetrics

SERVED = {"model": "chat", "version": "gen@1.0.0", "arm": "stable", "tier": "paid"}


class Counted:
    """RequestMetrics behind a registry, as Prometheus sees it."""

    def __init__(self) -> None:
        self.metrics = RequestMetrics(lambda: 0.0)
        self.registry = CollectorRegistry()
        self.registry.register(self.metrics)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"modelyard_{name}", labels)


@pytest.fixture
def counted() -> Counted:
    return Counted()


def record(**changes: Any) -> RequestRecord:
    values: dict[str, Any] = {
        "ts": "",
        "request_id": "r",
        "route": "/v1/chat/completions",
        "tenant": "alpha",
        "status": 200,
        "input_tokens": 7,
        "output_tokens": 3,
        "cached_tokens": 4,
        "ttft_ms": 120.0,
        "duration_ms": 480.0,
        "attempt": 1,
    }
    return RequestRecord(**(values | SERVED | changes))


def test_an_answered_request_is_counted_everywhere(counted: Counted) -> None:
    counted.metrics.request_done(record())
    route = "/v1/chat/completions"
    assert counted.value("requests_total", **SERVED, route=route, code="ok") == 1
    assert counted.value("time_to_first_token_seconds_sum", **SERVED) == 0.12
    assert counted.value("request_duration_seconds_sum", **SERVED, code="ok") == 0.48
    for direction, tokens in (("input", 7), ("cached", 4), ("output", 3)):
        assert counted.value("tokens_total", **SERVED, direction=direction) == tokens
    assert counted.value("tenant_tokens_total", tenant="alpha", direction="output") == 3


def test_a_refusal_is_counted_by_its_reason(counted: Counted) -> None:
    counted.metrics.request_done(
        record(status=429, code="rate_limited", reason="output_tokens", ttft_ms=None, attempt=0)
    )
    labels = {k: SERVED[k] for k in ("model", "version", "tier")}
    rejected = counted.value(
        "requests_rejected_total", **labels, code="rate_limited", reason="output_tokens"
    )
    assert rejected == 1
    assert counted.value("time_to_first_token_seconds_count", **SERVED) == 0


@pytest.mark.parametrize(
    "ended",
    [
        {"status": 499, "code": "cancelled", "reason": "client_gone", "ttft_ms": None},
        {"status": 504, "code": "deadline_exceeded", "reason": "total", "ttft_ms": None},
        {"status": 503, "code": "overloaded", "reason": "queue_full"},  # it had a first token
    ],
)
def test_what_was_taken_on_is_not_a_refusal(counted: Counted, ended: dict[str, Any]) -> None:
    counted.metrics.request_done(record(**ended))
    [family] = [m for m in counted.metrics.collect() if m.name == "modelyard_requests_rejected"]
    assert family.samples == []


def test_what_a_stranger_types_never_becomes_a_label(counted: Counted) -> None:
    counted.metrics.request_done(
        record(model="x" * 200, version="", arm="", status=404, code="not_found", ttft_ms=None)
    )
    for family in counted.metrics.collect():
        assert all("x" not in sample.labels.get("model", "") for sample in family.samples)


def test_a_second_attempt_is_a_retry(counted: Counted) -> None:
    counted.metrics.request_done(record(attempt=1))
    counted.metrics.request_done(record(attempt=2))
    assert counted.value("retries_total", model="chat", version="gen@1.0.0") == 1


def test_gaps_are_counted_by_token(counted: Counted) -> None:
    gaps = counted.metrics.gaps(record())
    gaps.item(1, 10.0)  # the first token has no gap before it
    gaps.item(1, 10.25)
    gaps.item(0, 10.5)  # an event without a token
    gaps.item(3, 10.75)
    assert counted.value("inter_token_latency_seconds_count", **SERVED) == 4
    assert counted.value("inter_token_latency_seconds_sum", **SERVED) == pytest.approx(0.75)
    below = counted.value("inter_token_latency_seconds_bucket", **SERVED, le="0.25")
    assert below == 4


def test_two_ingresses_of_one_process_share_nothing() -> None:
    one, other = Counted(), Counted()
    one.metrics.request_done(record())
    assert other.value("tenant_tokens_total", tenant="alpha", direction="output") is None
