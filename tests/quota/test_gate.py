"""Reserve and settle at one ingress; the lessons that other gateways paid for with bugs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from modelyard.config.quotas import Limits, Quota
from modelyard.contract.errors import InvalidRequest, RateLimited
from modelyard.quota.gate import QuotaGate
from modelyard.quota.messages import Tally
from modelyard.quota.reservation import Exceeds, Need, Refusal, Reservation

Split = Callable[..., Any]
QUOTA = Quota(
    input_tokens_per_min=6000,
    input_burst_tokens=600,
    output_tokens_per_min=3000,
    output_burst_tokens=300,
    requests_per_min=600,
    max_active_sequences=4,
)
NEED = Need("r1", "acme", "generator", input_tokens=100, output_tokens=50)


def level(gate: QuotaGate, direction: str, now: float) -> float:
    part = next(
        one for key, one in gate.holder.parts.items() if key[1:] == ("generator", direction)
    )
    return part.permits.free if part.is_permits else part.level(now) / 60e9


def taken(outcome: object) -> Reservation:
    assert isinstance(outcome, Reservation)
    return outcome


def test_a_tenant_without_quota_is_not_limited() -> None:
    gate = QuotaGate("i", 0.0)
    gate.adopt({})
    need = replace(NEED, input_tokens=10**9)
    reservation = gate.admitted(gate.reserve(need, 0.0), 0.0)
    assert gate.settle(reservation, 10, 5, 0.0)
    assert gate.headers("acme", "generator", 0.0) == []
    assert gate.tallies[("acme", "generator")] == Tally(1, 0, 0, 10, 5)


def test_all_directions_are_taken_or_none(split: Split) -> None:
    cluster = split(QUOTA, 1)
    gate = cluster.gates[0]
    before = level(gate, "input", cluster.now)
    refusal = gate.reserve(replace(NEED, output_tokens=300), cluster.now)
    assert isinstance(refusal, Refusal)
    assert refusal.direction == "output"
    assert level(gate, "input", cluster.now) == before
    taken(gate.reserve(NEED, cluster.now))
    assert level(gate, "input", cluster.now) == before - 100
    assert level(gate, "sequences", cluster.now) == 1


def test_a_refusal_says_what_is_missing_and_when_it_will_be_there(split: Split) -> None:
    cluster = split(QUOTA, 1)
    need = replace(NEED, output_tokens=0, input_tokens=600)
    taken(cluster.reserve(0, need))
    refusal = cluster.reserve(0, replace(NEED, output_tokens=0))
    assert isinstance(refusal, Refusal)
    assert (refusal.direction, refusal.missing, refusal.retry_after_s) == ("input", 100, 1.0)
    with pytest.raises(RateLimited) as caught:
        cluster.gates[0].admitted(refusal, cluster.now)
    assert caught.value.reason == "quota_input"
    assert caught.value.retry_after_s == 1.0
    cluster.now += 1.0
    assert isinstance(cluster.reserve(0, replace(NEED, output_tokens=0)), Reservation)


def test_more_than_the_whole_bucket_can_never_be_admitted(split: Split) -> None:
    cluster = split(QUOTA, 1)
    outcome = cluster.reserve(0, replace(NEED, output_tokens=301))
    assert isinstance(outcome, Exceeds)
    with pytest.raises(InvalidRequest) as caught:
        cluster.gates[0].admitted(outcome, cluster.now)
    assert caught.value.reason == "request_exceeds_burst"
    answers = cluster.reserve(0, replace(NEED, sequences=5))
    assert isinstance(answers, Exceeds)


def test_a_request_without_a_cap_is_not_refused_by_a_small_quota(split: Split) -> None:
    """Lesson (a): what the caller did not say is lowered to the burst."""
    cluster = split(QUOTA, 1)
    need = replace(NEED, input_tokens=9999, output_tokens=1024, output_is_explicit=False)
    reservation = taken(cluster.reserve(0, need))
    assert reservation.taken["output"] == 300
    assert reservation.taken["input"] == 600
    exact = replace(need, input_is_exact=True)
    assert isinstance(cluster.reserve(0, exact), Exceeds)


def test_every_kind_of_request_is_charged_in_its_own_class(split: Split) -> None:
    """Lesson (c): small models report input only, and have buckets of their own."""
    cluster = split(Quota(input_tokens_per_min=6000, small=Limits(input_tokens_per_min=600)), 1)
    need = Need("r2", "acme", "small", input_tokens=100)
    gate = cluster.gates[0]
    reservation = gate.admitted(cluster.reserve(0, need), cluster.now)
    gate.settle(reservation, 80, 0, cluster.now)
    assert gate.tallies[("acme", "small")].input_tokens == 80
    assert dict(gate.headers("acme", "small", cluster.now))["x-ratelimit-limit-tokens"] == "600"


def test_a_reservation_is_settled_once_whatever_is_retried(split: Split) -> None:
    """Lesson (d)."""
    cluster = split(QUOTA, 1)
    gate = cluster.gates[0]
    before = level(gate, "input", cluster.now)
    reservation = gate.admitted(gate.reserve(NEED, cluster.now), cluster.now)
    assert gate.settle(reservation, 40, 20, cluster.now) is True
    assert gate.settle(reservation, 40, 20, cluster.now) is False
    assert gate.settle(reservation, 0, 0, cluster.now, served=False) is False
    assert level(gate, "input", cluster.now) == before - 40
    assert level(gate, "sequences", cluster.now) == 2


def test_an_engine_that_never_said_its_usage_is_charged_the_reservation(split: Split) -> None:
    """Lessons (e) and (g): a broken stream costs its input and what it sent."""
    cluster = split(QUOTA, 1)
    gate = cluster.gates[0]
    read, written = level(gate, "input", cluster.now), level(gate, "output", cluster.now)
    reservation = gate.admitted(gate.reserve(NEED, cluster.now), cluster.now)
    gate.settle(reservation, None, 7, cluster.now)
    assert level(gate, "input", cluster.now) == read - 100
    assert level(gate, "output", cluster.now) == written - 7


def test_cached_tokens_are_not_charged(split: Split) -> None:
    """Lesson (f)."""
    cluster = split(QUOTA, 1)
    gate = cluster.gates[0]
    before = level(gate, "input", cluster.now)
    reservation = gate.admitted(gate.reserve(NEED, cluster.now), cluster.now)
    gate.settle(reservation, 90, 0, cluster.now, cached_tokens=64)
    assert level(gate, "input", cluster.now) == before - 26


def test_a_request_that_no_engine_began_costs_nothing(split: Split) -> None:
    cluster = split(QUOTA, 1)
    gate = cluster.gates[0]
    before = [level(gate, one, cluster.now) for one in ("input", "output", "requests")]
    reservation = gate.admitted(gate.reserve(NEED, cluster.now), cluster.now)
    gate.settle(reservation, 0, 0, cluster.now, served=False)
    assert [level(gate, one, cluster.now) for one in ("input", "output", "requests")] == before


def test_overuse_is_a_debt_that_the_next_requests_wait_for(split: Split) -> None:
    cluster = split(Quota(input_tokens_per_min=6000, input_burst_tokens=600), 1)
    gate = cluster.gates[0]
    reservation = gate.admitted(cluster.reserve(0, replace(NEED, input_tokens=600)), cluster.now)
    gate.settle(reservation, 800, 0, cluster.now)
    assert level(gate, "input", cluster.now) == -200
    assert isinstance(cluster.reserve(0, replace(NEED, input_tokens=1)), Refusal)
    cluster.run(20)
    assert isinstance(cluster.reserve(0, replace(NEED, input_tokens=600)), Reservation)


def test_permits_bound_what_runs_at_once(split: Split) -> None:
    cluster = split(Quota(max_active_sequences=4), 2)
    first = taken(cluster.reserve(0, replace(NEED, sequences=4)))
    refusal = cluster.reserve(1, NEED)
    assert isinstance(refusal, Refusal)
    assert refusal.direction == "sequences"
    cluster.gates[0].settle(first, 0, 0, cluster.now)
    assert isinstance(cluster.reserve(1, NEED), Reservation)


def test_shadow_mode_counts_and_refuses_nothing(split: Split) -> None:
    cluster = split(QUOTA.model_copy(update={"mode": "shadow"}), 1)
    gate = cluster.gates[0]
    outcome = cluster.reserve(0, replace(NEED, output_tokens=301))
    reservation = gate.admitted(outcome, cluster.now)
    assert reservation.taken == {}
    gate.settle(reservation, 5, 5, cluster.now)
    assert gate.tallies[("acme", "generator")] == Tally(1, 0, 1, 5, 5)


def test_a_bucket_that_is_used_up_is_not_recalled_for_every_refusal(split: Split) -> None:
    cluster = split(QUOTA, 1)
    gate = cluster.gates[0]
    taken(cluster.reserve(0, replace(NEED, input_tokens=600)))
    refusal = gate.reserve(NEED, cluster.now)
    assert gate.should_recall(refusal, cluster.now)
    assert gate.should_recall(refusal, cluster.now), "others may wait for the same call"
    gate.recalled_in_vain(refusal, cluster.now)
    assert not gate.should_recall(refusal, cluster.now)
    assert gate.should_recall(refusal, cluster.now + 0.3)


def test_headers_show_a_lower_bound(split: Split) -> None:
    cluster = split(QUOTA, 2)
    headers = dict(cluster.gates[0].headers("acme", "generator", cluster.now))
    assert headers["x-ratelimit-limit-input-tokens"] == "6000"
    assert headers["x-ratelimit-remaining-input-tokens"] == "200"
    assert headers["x-ratelimit-reset-input-tokens"] == "0s"
    assert headers["x-ratelimit-limit-requests"] == "600"
