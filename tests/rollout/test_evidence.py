"""Evidence as control uses it."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.config.rollout import (
    Gates,
    PointsGate,
    QualityGate,
    RatioGate,
    Rollout,
    SafetyLimits,
)
from modelyard.rollout.evidence import Evidence
from modelyard.rollout.outcome import Judgement, Outcome, OutcomeArm, OutcomeBatch
from modelyard.rollout.packing import UnreadableEvidence, pack, unpack
from modelyard.rollout.verdict import GateState, Verdict

PLAN = Rollout(
    id="r1",
    labels=("retrieval",),
    min_samples=100,
    gates=Gates(quality=QualityGate()),
    limits=SafetyLimits(ttft_p95_s=2.0, e2e_p95_s=20.0),
)
FAIL = GateState.FAILING


def outcome(arm: OutcomeArm = "canary", **changed: Any) -> Outcome:
    plain = Outcome("r1", arm, "free", "", "", "ok", False, False, 0.2, 1.0, 100)
    return replace(plain, **changed)


def traffic(
    rng: random.Random,
    count: int,
    weight: float = 0.05,
    canary: Callable[[Outcome], Outcome] = lambda one: one,
    errors: float = 0.01,
) -> tuple[Outcome, ...]:
    def one() -> Outcome:
        plain = outcome(
            arm="canary" if rng.random() < weight else "stable",
            tier=rng.choice(["free", "paid"]),
            label=rng.choice(["", "retrieval", "unknown"]),
            failed=rng.random() < errors,
            ttft_s=rng.lognormvariate(-1.5, 0.5),
            e2e_s=rng.lognormvariate(0.5, 0.5),
            output_tokens=round(rng.lognormvariate(5, 0.8)),
        )
        return canary(plain) if plain.arm == "canary" else plain

    return tuple(one() for _ in range(count))


def begun(percent: float = 5, plan: Rollout = PLAN) -> Evidence:
    evidence = Evidence(plan)
    evidence.begin_step(percent, 0.0)
    return evidence


def feed(evidence: Evidence, outcomes: tuple[Outcome, ...], from_s: float = 0.0) -> None:
    for number in range(0, len(outcomes), 200):
        batch = OutcomeBatch(number + 1, outcomes[number : number + 200])
        evidence.take(batch, from_s + number / 40)


def states(evidence: Evidence) -> dict[str, GateState]:
    return {one.gate: one.state for one in evidence.verdicts()}


def of(evidence: Evidence, gate: str) -> Verdict:
    return next(one for one in evidence.verdicts() if one.gate == gate)


def test_there_is_a_verdict_for_each_gate_and_limit_of_the_plan() -> None:
    assert list(states(begun())) == [
        *("errors", "ttft", "e2e", "tokens", "quality"),
        *("limit_errors", "limit_ttft", "limit_e2e"),
    ]
    bare = Rollout(id="r1", gates=Gates(errors=None, ttft=None, e2e=None, tokens=None))
    assert list(states(begun(plan=bare))) == ["limit_errors"]


def test_the_same_version_waits_for_its_samples_and_passes() -> None:
    evidence = begun()
    feed(evidence, traffic(random.Random(1), 600))
    assert {state for gate, state in states(evidence).items() if gate != "quality"} == {
        GateState.WAITING
    }
    feed(evidence, traffic(random.Random(2), 6000), from_s=15)
    assert evidence.samples > 300
    assert {state for gate, state in states(evidence).items() if gate != "quality"} == {
        GateState.PASSING
    }


@pytest.mark.parametrize(
    ("gate", "change"),
    [
        ("errors", lambda one: replace(one, failed=(one.output_tokens % 10) == 0)),
        ("ttft", lambda one: replace(one, ttft_s=(one.ttft_s or 0) * 1.6)),
        ("e2e", lambda one: replace(one, e2e_s=(one.e2e_s or 0) * 1.6)),
        ("tokens", lambda one: replace(one, output_tokens=2 * one.output_tokens)),
    ],
)
def test_what_is_worse_fails_its_gate_and_no_other(
    gate: str, change: Callable[[Outcome], Outcome]
) -> None:
    evidence = begun()
    feed(evidence, traffic(random.Random(3), 12_000, canary=change))
    failing = {name for name, state in states(evidence).items() if state is FAIL}
    assert failing - {"limit_errors"} == {gate}


def test_a_difference_inside_the_margin_never_fails_however_sure_it_is() -> None:
    plan = PLAN.model_copy(update={"gates": Gates(errors=PointsGate(margin_points=10))})
    evidence = begun(50, plan)
    worse = traffic(
        random.Random(4),
        6000,
        weight=0.5,
        canary=lambda one: replace(one, failed=one.output_tokens % 25 == 0),
    )
    feed(evidence, worse)
    verdict = of(evidence, "errors")
    assert verdict.evidence is not None
    assert verdict.threshold is not None
    assert verdict.evidence > verdict.threshold
    assert verdict.state is GateState.PASSING
    assert verdict.words.endswith("and more is not shown")


def test_a_regression_of_one_tier_names_the_tier() -> None:
    evidence = begun(25)
    feed(
        evidence,
        traffic(
            random.Random(5),
            4000,
            weight=0.25,
            canary=lambda one: replace(
                one, failed=one.tier == "paid" and one.output_tokens % 4 < 1
            ),
        ),
    )
    assert of(evidence, "errors").state is FAIL
    assert of(evidence, "errors").where == "tier=paid"


def test_an_incident_on_both_arms_fails_nothing() -> None:
    for percent in (5, 50):
        evidence = begun(percent)
        feed(evidence, traffic(random.Random(6), 8000, weight=percent / 100, errors=0.3))
        assert FAIL not in states(evidence).values()


def test_without_a_control_arm_only_limits_count() -> None:
    evidence = begun(100)
    feed(evidence, traffic(random.Random(7), 400, weight=1.0, errors=0.3))
    assert of(evidence, "errors").state is GateState.PASSING
    assert of(evidence, "errors").words == "no control arm is left at 100 %: only the limits count"
    assert of(evidence, "limit_errors").state is FAIL


def test_a_canary_slower_than_its_limit_fails_the_limit() -> None:
    evidence = begun()
    feed(
        evidence,
        traffic(random.Random(8), 8000, canary=lambda one: replace(one, ttft_s=5.0, e2e_s=30.0)),
    )
    assert of(evidence, "limit_ttft").state is FAIL
    assert of(evidence, "limit_e2e").state is FAIL
    assert of(evidence, "limit_errors").state is GateState.PASSING


def test_clients_that_left_are_shown_and_count_for_nothing() -> None:
    evidence = begun()
    feed(evidence, tuple(outcome(cancelled=True, e2e_s=None) for _ in range(500)))
    stable, canary = evidence.figures()
    assert (canary.cancelled, canary.requests, stable.requests) == (500, 0, 0)
    assert evidence.samples == 0


def test_while_shadowing_pairs_are_compared() -> None:
    evidence = begun(0)
    rng = random.Random(9)
    for number in range(200):
        stable = outcome("stable", pair=f"{number}")
        copy = outcome("shadow", pair=f"{number}", failed=rng.random() < 0.3, match=number % 4 > 0)
        evidence.take(OutcomeBatch(1, (stable, copy, outcome("stable"), outcome())), 1.0)
    stable_figures, shadow = evidence.figures()
    assert (evidence.samples, stable_figures.requests, shadow.arm) == (200, 200, "shadow")
    assert (shadow.matches, shadow.compared) == (150, 200)
    assert of(evidence, "errors").state is FAIL


def test_a_new_step_counts_anew_and_remembers_what_it_knew() -> None:
    evidence = begun()
    feed(
        evidence,
        traffic(
            random.Random(3),
            1500,
            canary=lambda one: replace(one, failed=one.output_tokens % 20 < 1),
        ),
    )
    before = of(evidence, "errors").evidence
    assert before is not None
    assert before > 2
    evidence.begin_step(25, 600.0)
    assert evidence.samples == 0
    assert [one.requests for one in evidence.figures()] == [0, 0]
    assert of(evidence, "errors").evidence == pytest.approx(before)
    assert of(evidence, "errors").state is GateState.WAITING


def test_what_failed_and_was_let_pass_must_show_itself_again() -> None:
    evidence = begun()
    feed(evidence, traffic(random.Random(3), 8000, canary=slow_and_failing))
    assert of(evidence, "errors").state is FAIL
    evidence.begin_step(25, 600.0)
    feed(evidence, traffic(random.Random(4), 100, weight=0.25), from_s=600.0)
    assert {of(evidence, gate).state for gate in ("errors", "ttft")} == {GateState.WAITING}
    feed(
        evidence,
        traffic(random.Random(5), 8000, weight=0.25, canary=slow_and_failing),
        from_s=603.0,
    )
    assert of(evidence, "errors").state is FAIL


def test_nothing_counts_before_a_step_begins() -> None:
    evidence = Evidence(PLAN)
    feed(evidence, traffic(random.Random(1), 200))
    assert evidence.samples == 0


MALFORMED = st.sampled_from(
    [
        {"tier": None},
        {"label": 3},
        {"conversation": b"x"},
        {"failed": "yes"},
        {"cancelled": None},
        {"ttft_s": math.nan},
        {"ttft_s": -1.0},
        {"e2e_s": math.inf},
        {"e2e_s": "1"},
        {"output_tokens": -1},
        {"output_tokens": 10**12},
        {"output_tokens": None},
        {"output_tokens": 10**400},
        {"output_tokens": math.nan},
        {"ttft_s": 10**400},
        {"ttft_s": 1e308},
        {"e2e_s": -(10**400)},
        {"e2e_s": 1e8},
        {"refused": "x"},
        {"arm": "other"},
        {"arm": []},
        {"rollout": "other"},
        {"match": "x", "arm": None},
    ]
)


@given(bad=st.lists(MALFORMED, min_size=1, max_size=5), junk=st.sampled_from([None, 3, "x", {}]))
@settings(max_examples=60, deadline=None)
def test_what_is_malformed_is_left_out_and_raises_nothing(
    bad: list[dict[str, Any]], junk: Any
) -> None:
    evidence, plain = begun(), begun()
    good = traffic(random.Random(1), 50)
    evidence.take(OutcomeBatch(1, (*good, junk, *(outcome(**one) for one in bad)), (junk,)), 1.0)
    plain.take(OutcomeBatch(1, good), 1.0)
    assert evidence.verdicts() == plain.verdicts()
    assert evidence.figures() == plain.figures()


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_the_order_within_a_batch_decides_nothing(seed: int) -> None:
    rng = random.Random(seed)
    one, other = begun(20), begun(20)
    for number in range(4):
        outcomes = [
            replace(each, conversation=f"c{rng.randrange(60)}")
            for each in traffic(rng, 150, weight=0.2, errors=0.1)
        ]
        shuffled = rng.sample(outcomes, len(outcomes))
        one.take(OutcomeBatch(number, tuple(outcomes)), float(number))
        other.take(OutcomeBatch(number, tuple(shuffled)), float(number))
    for first, second in zip(one.verdicts(), other.verdicts(), strict=True):
        assert first.state is second.state
        assert first.evidence == pytest.approx(second.evidence, rel=1e-9)


@given(seed=st.integers(0, 10_000), buckets=st.integers(-60, 60))
@settings(max_examples=15, deadline=None)
def test_a_factor_on_both_arms_latencies_changes_no_evidence(seed: int, buckets: int) -> None:
    factor = 1.02**buckets
    plain = begun(20)
    scaled = begun(20)
    outcomes = traffic(random.Random(seed), 1000, weight=0.2)
    feed(plain, outcomes)
    feed(
        scaled,
        tuple(
            replace(
                one,
                ttft_s=None if one.ttft_s is None else one.ttft_s * factor,
                e2e_s=None if one.e2e_s is None else one.e2e_s * factor,
            )
            for one in outcomes
        ),
    )
    for gate in ("ttft", "e2e"):
        assert of(scaled, gate).evidence == pytest.approx(of(plain, gate).evidence, rel=1e-6)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_encoding_changes_no_verdict_then_or_later(seed: int) -> None:
    rng = random.Random(seed)
    evidence = begun(20)
    feed(evidence, traffic(rng, 1500, weight=0.2, errors=0.05))
    judgement = Judgement("r1", "canary", "u", "c", True, "judge", "p")
    evidence.take(OutcomeBatch(99, (), (judgement,)), 40.0)
    restored = Evidence.decode(evidence.encode(), PLAN)
    more = traffic(rng, 1500, weight=0.2, errors=0.05)
    for _ in range(2):
        assert restored.verdicts() == evidence.verdicts()
        assert restored.figures() == evidence.figures()
        assert restored.samples == evidence.samples
        for each in (evidence, restored):
            feed(each, more, from_s=1000.0)
            each.take(OutcomeBatch(100, (), (judgement, replace(judgement, unit="v"))), 1100.0)


def slow_and_failing(one: Outcome) -> Outcome:
    return replace(one, ttft_s=2 * (one.ttft_s or 0), failed=one.output_tokens % 10 < 1)


def test_a_margin_that_changed_asks_its_question_anew_and_keeps_the_rest() -> None:
    evidence = begun()
    feed(evidence, traffic(random.Random(3), 12_000, canary=slow_and_failing))
    gates = PLAN.gates.model_copy(update={"ttft": RatioGate(margin_percent=20)})
    changed = Evidence.decode(evidence.encode(), PLAN.model_copy(update={"gates": gates}))
    evidence_left = of(changed, "ttft").evidence
    assert evidence_left is not None
    assert evidence_left <= 1.0
    assert of(changed, "errors") == of(evidence, "errors")
    assert changed.figures() == evidence.figures()
    feed(changed, traffic(random.Random(4), 12_000, canary=slow_and_failing), from_s=300.0)
    assert of(changed, "ttft").state is FAIL


def test_labels_that_changed_begin_anew_with_the_judgements_there_were() -> None:
    evidence = begun()
    feed(evidence, traffic(random.Random(3), 4000))
    judgement = Judgement("r1", "canary", "u", "c", True, "judge")
    evidence.take(OutcomeBatch(9, (), (judgement,)), 100.0)
    changed = Evidence.decode(evidence.encode(), PLAN.model_copy(update={"labels": ("other",)}))
    assert changed.samples == 0
    assert changed.figures()[1].judged == 1
    feed(changed, traffic(random.Random(4), 12_000, canary=slow_and_failing), from_s=300.0)
    assert {of(changed, gate).state for gate in ("errors", "ttft")} == {FAIL}


@pytest.mark.parametrize("gate", ["errors", "ttft", "e2e", "tokens"])
def test_a_gate_may_be_added_or_taken_away(gate: str) -> None:
    without = PLAN.model_copy(update={"gates": PLAN.gates.model_copy(update={gate: None})})
    for old, new in ((PLAN, without), (without, PLAN)):
        evidence = begun(plan=old)
        feed(evidence, traffic(random.Random(1), 1000))
        changed = Evidence.decode(evidence.encode(), new)
        feed(changed, traffic(random.Random(2), 1000), from_s=100.0)
        assert changed.samples > evidence.samples
        assert FAIL not in states(changed).values()


@pytest.mark.parametrize(
    "path",
    [
        ("ttft", "_recent"),
        ("totals", "requests"),
        ("exposure", "_counts"),
        ("tokens", "_sums"),
        ("errors", "mixture", "log_e"),
        ("errors", "mixture", "tallies"),
        ("errors", "mixture", "weights"),
        ("errors", "seen", "taken"),
    ],
)
def test_evidence_of_another_shape_is_refused(path: tuple[str, ...]) -> None:
    evidence = begun()
    feed(evidence, traffic(random.Random(1), 500))
    state = unpack(evidence.encode())
    part = state["parts"]
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = np.concatenate((part[path[-1]], part[path[-1]]))
    with pytest.raises(UnreadableEvidence):
        Evidence.decode(pack(state), PLAN)


def test_what_a_version_refuses_is_compared_and_is_no_harm() -> None:
    evidence = begun(50)
    feed(
        evidence,
        traffic(
            random.Random(6),
            4000,
            weight=0.5,
            canary=lambda one: replace(one, refused=one.output_tokens % 5 < 1),
        ),
    )
    assert of(evidence, "errors").state is FAIL
    assert of(evidence, "limit_errors").state is GateState.PASSING
    harm = of(evidence, "limit_errors").canary
    assert harm is not None
    assert harm < 0.03
    assert evidence.figures()[1].failed > 0.15 * evidence.figures()[1].requests


def test_requests_that_both_versions_refuse_fail_nothing() -> None:
    evidence = begun(50)
    outcomes = traffic(random.Random(6), 4000, weight=0.5)
    feed(evidence, tuple(replace(one, refused=one.output_tokens % 5 < 1) for one in outcomes))
    assert FAIL not in states(evidence).values()


def test_one_conversation_is_not_enough_to_pass_or_fail() -> None:
    for percent in (5, 100):
        evidence = begun(percent)
        canary = traffic(random.Random(7), 2000, weight=1.0, errors=1.0)
        feed(evidence, tuple(replace(one, conversation="c") for one in canary))
        feed(evidence, traffic(random.Random(8), 2000, weight=0.0), from_s=1000.0)
        verdict = of(evidence, "limit_errors")
        assert verdict.state is GateState.WAITING
        assert verdict.words.startswith("only 1 conversations on the canary")
        assert set(states(evidence).values()) == {GateState.WAITING}


def test_where_nothing_was_streamed_the_gate_says_so_and_passes() -> None:
    evidence = begun(50)
    outcomes = traffic(random.Random(1), 2000, weight=0.5)
    feed(evidence, tuple(replace(one, ttft_s=None) for one in outcomes))
    assert of(evidence, "ttft").state is GateState.PASSING
    assert of(evidence, "ttft").words == "not judged: nothing was streamed"
    assert not any("unknown" in one.words for one in evidence.verdicts())


def test_a_chatty_canary_that_is_slower_is_called_chatty() -> None:
    evidence = begun(50)
    feed(
        evidence,
        traffic(
            random.Random(1),
            4000,
            weight=0.5,
            canary=lambda one: replace(
                one, output_tokens=2 * one.output_tokens, e2e_s=2 * (one.e2e_s or 0)
            ),
        ),
    )
    assert of(evidence, "e2e").state is FAIL
    assert "its answers are also 2." in of(evidence, "e2e").words


@pytest.mark.parametrize("data", [b"", b"x", begun().encode()[:-20], begun().encode()[20:]])
def test_bytes_that_are_no_evidence_are_refused(data: bytes) -> None:
    with pytest.raises(UnreadableEvidence):
        Evidence.decode(data, PLAN)


def test_the_largest_evidence_is_small() -> None:
    labels = tuple(f"label{number}" for number in range(8))
    plan = PLAN.model_copy(update={"labels": labels})
    evidence = begun(50, plan)
    rng = random.Random(1)
    for step in range(14):
        evidence.begin_step(50, 1000.0 * step)
        outcomes = tuple(
            replace(
                one,
                tier=rng.choice("abcdef"),
                label=rng.choice(labels),
                conversation=f"{rng.getrandbits(48):012x}",
                ttft_s=rng.lognormvariate(1, 1.5),
            )
            for one in traffic(rng, 1500, weight=0.5, errors=0.3)
        )
        judgements = tuple(
            Judgement("r1", "canary", f"{rng.getrandbits(48)}", "", True, "judge", f"{number}")
            for number in range(500)
        )
        evidence.take(OutcomeBatch(1, outcomes, judgements), 1000.0 * step)
    assert len(evidence.encode()) < 200_000
