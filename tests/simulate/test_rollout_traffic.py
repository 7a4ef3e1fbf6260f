"""The simulated traffic is what its description says."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from modelyard.simulate.rollout_conversations import are_on_canary
from modelyard.simulate.rollout_drawn import Drawn
from modelyard.simulate.rollout_traffic import Arm, Stream, Traffic

P95 = 0.95


def drawn(traffic: Traffic, weight: float = 0.5, lasts_s: float = 3000.0) -> Drawn:
    stream = Stream(traffic, np.random.default_rng(1))
    ticks = [tick for _, tick in stream.ticks(weight, 0.0, lasts_s, 5.0)]
    return Drawn(
        *(np.concatenate([getattr(tick, field.name) for tick in ticks]) for field in fields(Drawn))
    )


@pytest.mark.parametrize("turns", [1.0, 5.0])
def test_each_arm_has_its_share_of_errors_and_refusals(turns: float) -> None:
    canary = Arm(errors=0.03, refused=0.1)
    rows = drawn(Traffic(canary=canary, turns=turns))
    assert rows.canary.mean() == pytest.approx(0.5, abs=0.02)
    assert rows.failed[rows.canary].mean() == pytest.approx(0.03, abs=0.005)
    assert rows.failed[~rows.canary].mean() == pytest.approx(0.01, abs=0.003)
    assert rows.refused[rows.canary].mean() == pytest.approx(0.097, abs=0.01)
    assert not rows.refused[~rows.canary].any()


@pytest.mark.parametrize("turns", [5.0, 20.0])
def test_conversations_stay_on_their_arm_and_have_their_turns(turns: float) -> None:
    rows = drawn(Traffic(turns=turns), 0.3)
    arms = {(int(key), bool(arm)) for key, arm in zip(rows.conversation, rows.canary, strict=True)}
    keys = {key for key, _ in arms}
    assert len(arms) == len(keys)
    assert len(rows.canary) / len(keys) == pytest.approx(turns, rel=0.15)


def test_a_conversation_fails_as_a_whole_where_its_turns_are_alike() -> None:
    rows = drawn(Traffic(stable=Arm(errors=0.3), turns=5.0, alike=1.0), 0.0)
    failed = {(int(a), bool(b)) for a, b in zip(rows.conversation, rows.failed, strict=True)}
    assert len(failed) == len({key for key, _ in failed})


def test_a_weight_that_rises_moves_no_conversation_back() -> None:
    keys = np.arange(1, 10_000)
    lower, higher = (are_on_canary(keys, 7, weight) for weight in (0.05, 0.25))
    assert not (lower & ~higher).any()
    assert (lower.mean(), higher.mean()) == pytest.approx((0.05, 0.25), abs=0.02)


@pytest.mark.parametrize(
    ("canary", "median", "p95"),
    [(Arm(first=1.3, pace=1.3), 1.3, 1.3), (Arm(body=1.2), 1.2, 1.0), (Arm(), 1.0, 1.0)],
)
def test_durations_are_slower_by_what_was_asked(canary: Arm, median: float, p95: float) -> None:
    rows = drawn(Traffic(canary=canary))
    for values in (rows.ttft_s, rows.e2e_s):
        arms = values[rows.canary], values[~rows.canary]
        assert np.median(arms[0]) / np.median(arms[1]) == pytest.approx(median, abs=0.04)
        assert np.quantile(arms[0], P95) / np.quantile(arms[1], P95) == pytest.approx(p95, abs=0.05)


def test_longer_answers_take_longer_and_begin_as_soon() -> None:
    rows = drawn(Traffic(canary=Arm(longer=2.0)))
    ratios = [
        np.median(values[rows.canary]) / np.median(values[~rows.canary])
        for values in (rows.tokens, rows.e2e_s, rows.ttft_s)
    ]
    assert ratios == pytest.approx([2.0, 1.85, 1.0], abs=0.08)


def test_an_incident_and_a_late_fault_begin_when_they_should() -> None:
    late = Traffic(incident=(100.0, 200.0, 1.0), late=(300.0, Arm(errors=1.0)))
    ticks = Stream(late, np.random.default_rng(1)).ticks(0.5, 0.0, 400.0, 50.0)
    shares = [
        (
            round(float(rows.failed[~rows.canary].mean())),
            round(float(rows.failed[rows.canary].mean())),
        )
        for _, rows in ticks
    ]
    assert shares == [(0, 0)] * 2 + [(1, 1)] * 2 + [(0, 0)] * 2 + [(0, 1)] * 2


def test_a_record_says_what_the_arrays_say() -> None:
    rows = drawn(replace(Traffic(), paid=0.3))
    assert rows.paid.mean() == pytest.approx(0.3, abs=0.01)
    few = rows.part(slice(0, 100))
    outcomes = few.outcomes("r")
    assert [one.arm == "canary" for one in outcomes] == few.canary.tolist()
    assert [one.e2e_s is None for one in outcomes] == (few.failed | few.refused).tolist()
