"""Control's side: what it grants, and that it never grants the same twice."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from modelyard.config.quotas import Quota
from modelyard.quota.book import REGRANT_S, Book, Seen
from modelyard.quota.bucket import RATE, UNITS
from modelyard.quota.figures import Figures, Key, figures_of
from modelyard.quota.gate import QuotaGate
from modelyard.quota.holder import LEASE_S
from modelyard.quota.messages import SplitReply
from modelyard.quota.reservation import Need, Refusal, Reservation

Split = Callable[..., Any]
QUOTA = Quota(input_tokens_per_min=6000, input_burst_tokens=600)
WHOLE = Figures(6000 * RATE, 600 * UNITS)
KEY = Key("acme", "generator", "input")
NEED = Need("r", "acme", "generator", input_tokens=100)


def test_without_demand_everyone_and_the_pool_hold_the_same(split: Split) -> None:
    cluster = split(QUOTA, 2)
    assert cluster.held() == Figures(4000 * RATE, 400 * UNITS)
    assert cluster.book.pool_level(KEY, cluster.now) == 200 * UNITS


def test_the_split_follows_demand(split: Split) -> None:
    cluster = split(QUOTA, 2)
    for _ in range(10):
        taken = cluster.gates[0].reserve(replace(NEED, input_tokens=50), cluster.now)
        cluster.gates[0].admitted(taken, cluster.now)
        cluster.run(1)
    busy, idle = (gate.holder.parts[KEY].bucket.rate for gate in cluster.gates)
    assert busy > 20 * idle > 0


def test_level_that_lies_idle_elsewhere_is_recalled(split: Split) -> None:
    cluster = split(QUOTA, 3)
    assert isinstance(cluster.reserve(0, replace(NEED, input_tokens=600)), Reservation)
    assert isinstance(cluster.reserve(1, replace(NEED, input_tokens=1)), Refusal)


def test_the_ingress_runs_on_when_control_is_gone(split: Split) -> None:
    cluster = split(QUOTA, 2)
    gate = cluster.gates[0]
    for _ in range(60):
        cluster.now += 1.0
        gate.posted(cluster.now, cluster.now)
        outcome = gate.reserve(replace(NEED, input_tokens=30), cluster.now)
        assert isinstance(outcome, Reservation)
    beyond = gate.reserve(replace(NEED, input_tokens=300), cluster.now)
    assert isinstance(beyond, Refusal)


def test_an_ingress_that_nobody_hears_gives_up_its_split(split: Split) -> None:
    cluster = split(QUOTA, 2)
    gate = cluster.gates[0]
    cluster.now += LEASE_S - 0.1
    assert isinstance(gate.reserve(NEED, cluster.now), Reservation)
    cluster.now += 0.2
    assert isinstance(gate.reserve(replace(NEED, input_tokens=1), cluster.now), Refusal)


def test_a_lost_ingress_part_is_granted_again_only_after_ten_seconds(split: Split) -> None:
    cluster = split(QUOTA, 2)
    lost = cluster.gates.pop()
    cluster.run(REGRANT_S - 2)
    assert cluster.held().burst <= WHOLE.burst - lost.holder.parts[KEY].bucket.burst
    cluster.run(4)
    assert cluster.held().burst == WHOLE.burst // 2


def test_an_ingress_that_posts_on_the_board_is_not_lost(split: Split) -> None:
    cluster = split(QUOTA, 2)
    away = cluster.gates.pop()
    for _ in range(60):
        cluster.now += 1.0
        away.posted(cluster.now, cluster.now)
        cluster.exchange()
        cluster.book.tick(cluster.now, Seen({"ingress-0": 0.0, "ingress-1": 0.1}, 3600.0))
    own = away.holder.parts[KEY].bucket.burst
    assert own == WHOLE.burst // 3
    assert cluster.held().burst + own <= WHOLE.burst


def test_messages_are_taken_once_and_in_order(split: Split) -> None:
    cluster = split(QUOTA, 1)
    gate, book = cluster.gates[0], cluster.book
    early, late = gate.report(cluster.now), gate.report(cluster.now)
    first = book.take(late, cluster.now)
    assert first is not None
    assert book.take(early, cluster.now) is None
    assert book.take(late, cluster.now) is None
    second = book.take(gate.report(cluster.now), cluster.now)
    assert second is not None
    assert gate.take(second, cluster.now)
    assert not gate.take(first, cluster.now)
    assert not gate.take(second, cluster.now)


def test_messages_cross_processes(split: Split) -> None:
    cluster = split(QUOTA, 1)
    report = cluster.gates[0].report(cluster.now)
    reply = cluster.book.take(pickle.loads(pickle.dumps(report)), cluster.now)
    assert pickle.loads(pickle.dumps(reply)) == reply


def test_a_new_control_without_its_store_learns_before_it_grants(split: Split) -> None:
    cluster = split(QUOTA, 2)
    held = cluster.held()
    cluster.book = Book(2, cluster.now)
    cluster.book.adopt(figures_of(cluster.quotas), cluster.now)
    cluster.gates.append(cluster.new_gate("ingress-9"))
    cluster.run(REGRANT_S - 1)
    assert cluster.book.is_learning
    assert cluster.held() == held
    assert not cluster.gates[-1].holder.parts
    cluster.run(5)
    assert not cluster.book.is_learning
    assert cluster.gates[-1].holder.parts[KEY].bucket.burst > 0
    assert cluster.held().burst <= WHOLE.burst


def test_a_new_control_with_its_store_goes_on_at_once(split: Split) -> None:
    cluster = split(QUOTA, 2)
    held, snapshot = cluster.held(), json.loads(json.dumps(cluster.book.snapshot()))
    cluster.book = Book(snapshot["epoch"] + 1, cluster.now)
    cluster.book.restore(snapshot, complete=True, now=cluster.now)
    cluster.book.adopt(figures_of(cluster.quotas), cluster.now)
    assert cluster.book.pool_level(KEY, cluster.now) == 0
    cluster.run(2)
    assert cluster.held() == held
    cluster.run(6)
    assert cluster.book.pool_level(KEY, cluster.now) == 200 * UNITS


def test_an_older_control_is_not_heard(split: Split) -> None:
    cluster = split(QUOTA, 1)
    old, gate = cluster.book, cluster.gates[0]
    cluster.book = Book(2, cluster.now)
    cluster.book.adopt(figures_of(cluster.quotas), cluster.now)
    before = gate.report(cluster.now)
    late = old.take(before, cluster.now)
    assert late is not None
    cluster.exchange()
    assert not gate.take(late, cluster.now)
    assert old.take(gate.report(cluster.now), cluster.now) is None


def test_a_larger_table_mints_nothing_and_a_smaller_one_is_called_in(split: Split) -> None:
    cluster = split(QUOTA, 2)
    assert isinstance(cluster.reserve(0, replace(NEED, input_tokens=600)), Reservation)
    cluster.adopt({"acme": Quota(input_tokens_per_min=60, input_burst_tokens=6000)})
    cluster.exchange()
    assert isinstance(cluster.reserve(0, replace(NEED, input_tokens=10)), Refusal)
    cluster.adopt({"acme": Quota(input_tokens_per_min=60, input_burst_tokens=30)})
    cluster.run(4)
    assert cluster.held().burst <= 30 * UNITS
    assert cluster.held().rate <= 60 * RATE


def test_a_quota_left_out_and_put_back_is_not_full_again(split: Split) -> None:
    cluster = split(QUOTA, 1)
    assert isinstance(cluster.reserve(0, replace(NEED, input_tokens=600)), Reservation)
    cluster.adopt({})
    cluster.exchange()
    cluster.adopt({"acme": QUOTA})
    assert isinstance(cluster.reserve(0, NEED), Refusal)


def test_a_new_tenant_starts_full(split: Split) -> None:
    cluster = split(QUOTA, 1)
    cluster.adopt({"acme": QUOTA, "new": QUOTA})
    need = replace(NEED, tenant="new", input_tokens=600)
    assert isinstance(cluster.reserve(0, need), Reservation)


def test_a_debt_of_a_lost_ingress_is_paid_by_the_rest(split: Split) -> None:
    cluster = split(QUOTA, 2)
    gate = cluster.gates[1]
    reservation = gate.admitted(cluster.reserve(1, replace(NEED, input_tokens=500)), cluster.now)
    gate.settle(reservation, 2000, 0, cluster.now)
    cluster.exchange()
    cluster.gates.pop()
    cluster.run(REGRANT_S + 1)
    assert cluster.book.pool_level(KEY, cluster.now) < 0


def test_more_parts_than_can_be_stored_are_learned_by_the_next_control(
    monkeypatch: pytest.MonkeyPatch, split: Split
) -> None:
    monkeypatch.setattr("modelyard.quota.book.MAX_STORED", 3)
    cluster = split(QUOTA, 2)
    snapshot = cluster.book.snapshot()
    assert (snapshot["complete"], snapshot["parts"]) == (False, [])
    cluster.book = Book(snapshot["epoch"] + 1, cluster.now)
    cluster.book.restore(snapshot, complete=True, now=cluster.now)
    assert cluster.book.is_learning


def test_a_new_control_hears_of_every_part_although_it_answered_an_older_report() -> None:
    """It answers what was sent under an earlier epoch, and reads nothing of it."""
    gate = QuotaGate("i-1", 0.0, max_reported=1)
    for tenant in ("a", "b", "c"):
        gate.holder.part(Key(tenant, "generator", "input"), 0.0)
    first, second = gate.report(0.0), gate.report(0.0)
    for serial, report in ((1, first), (2, second)):
        gate.take(SplitReply("i-1", 1, 7, serial, report.sequence, {}, again=True), 0.0)
    whole = gate.report(0.0)
    assert (whole.epoch, len(whole.holdings)) == (7, 3)
    gate.take(SplitReply("i-1", 1, 7, 3, whole.sequence, {}), 0.0)
    assert len(gate.report(0.0).holdings) == 1, "from then on in turn"
