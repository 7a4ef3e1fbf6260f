"""Where a rollout goes by itself, transition by transition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.config.rollout import Gates, PointsGate, QualityGate, RatioGate, Rollout
from modelyard.rollout.capacity import Demand
from modelyard.rollout.look import Look
from modelyard.rollout.machine import advance
from modelyard.rollout.phases import OVER, RolloutPhase
from modelyard.rollout.readiness import hold_left_s
from modelyard.rollout.record import MAX_HISTORY, RolloutRecord, decide
from modelyard.rollout.verdict import GateState, Verdict

P = RolloutPhase
W, PASS, FAIL = GateState.WAITING, GateState.PASSING, GateState.FAILING
NOW = 10_000.0
PLAN = Rollout(
    id="r-1",
    steps_percent=(1, 25, 100),
    hold_s=60,
    min_samples=100,
    gates=Gates(errors=PointsGate(margin_points=0.5), ttft=None, e2e=None),  # tokens: hold
)
SHADOWED = PLAN.model_copy(update={"shadow_percent": 10.0, "shadow_min_pairs": 50})
AUTOMATIC = PLAN.model_copy(update={"start": "automatic"})
PLENTY = Demand(ready=2, slots=40, requests=10)


def verdict(gate: str, state: GateState = PASS, samples: int = 100) -> Verdict:
    return Verdict(gate, state, f"{gate} is {state}", samples=samples)


GOOD = (verdict("errors"), verdict("tokens"), verdict("limit_errors"))


def record(phase: RolloutPhase, percent: float = 0.0, **changes: Any) -> RolloutRecord:
    known = {"id": "r-1", "alias": "chat", "stable": "gen@1", "canary": "gen@2"}
    since = {"since": NOW - 100, "weight_since": NOW - 100}
    return RolloutRecord(**(known | since | changes), phase=phase, percent=percent)


def look(**changes: Any) -> Look:
    made = Look(NOW, PLAN, "chat", "gen@1", "gen@2", GOOD, samples=100, demand=PLENTY)
    return replace(made, **changes)


def with_(*verdicts: Verdict) -> tuple[Verdict, ...]:
    """Good, but for these."""
    named = {one.gate for one in verdicts}
    return (*(one for one in GOOD if one.gate not in named), *verdicts)


HOLDING = record(P.HOLDING, 1)
STAYS = [
    (record(P.PENDING), {}, "a human starts it"),
    (record(P.PENDING), {"plan": SHADOWED}, "a human starts it, shadow or not"),
    (record(P.SHADOWING), {"plan": SHADOWED, "samples": 49}, "too few pairs"),
    (record(P.SHADOWING, weight_since=NOW), {"plan": SHADOWED}, "it has just begun"),
    (record(P.STEP), {"demand": None}, "the board is silent"),
    (record(P.STEP), {"demand": Demand(0, 0, 0)}, "no replica"),
    (record(P.STEP, 1), {"demand": Demand(1, 4, 20)}, "too few slots: 25 % of 20 is 5"),
    (record(P.STEP), {"evidence_ok": False}, "nobody reports"),
    (record(P.STEP, 1), {"evidence_ok": False}, "nobody reports any more"),
    (record(P.STEP, 1), {"verdicts": with_(verdict("errors", W))}, "a gate passes no more"),
    (record(P.STEP, 1), {"verdicts": ()}, "no gate says anything"),
    (HOLDING, {"samples": 99}, "too few samples"),
    (
        record(P.HOLDING, 100),
        {"verdicts": with_(verdict("limit_errors", W))},
        "at 100 % a limit has not seen enough",
    ),
    (HOLDING, {"now": NOW - 41}, "the hold is not over"),
    (HOLDING, {"verdicts": with_(verdict("errors", W))}, "a gate has not decided"),
    (HOLDING, {"verdicts": GOOD[1:]}, "a gate has not looked"),
    (HOLDING, {"evidence_ok": False}, "nobody reports"),
    (record(P.HOLDING, 100), {"samples": 99}, "100 % needs its samples too"),
    (record(P.HOLDING, 100), {"now": NOW - 41}, "and its hold"),
    (record(P.AWAITING_APPROVAL, 1), {}, "a human approves, whatever the gates say now"),
    (record(P.PAUSED, 25), {}, "a human resumes"),
]


@pytest.mark.parametrize(("before", "seen", "why"), STAYS, ids=[one[2] for one in STAYS])
def test_it_stays_where_something_is_missing(
    before: RolloutRecord, seen: dict[str, Any], why: str
) -> None:
    assert advance(before, look(**seen)) == (before, None)


GOES = [
    (record(P.PENDING), {"plan": AUTOMATIC}, P.HOLDING, 1),
    (record(P.PENDING), {"plan": AUTOMATIC, "demand": Demand(0, 0, 0)}, P.STEP, 0),
    (
        record(P.PENDING, weight_since=0.0),
        {"plan": SHADOWED.model_copy(update={"start": "automatic"})},
        P.SHADOWING,
        0,
    ),
    (record(P.SHADOWING), {"plan": SHADOWED, "samples": 50}, P.HOLDING, 1),
    (record(P.SHADOWING), {"plan": SHADOWED, "demand": Demand(0, 0, 0)}, P.STEP, 0),
    (record(P.PENDING), {"plan": AUTOMATIC, "evidence_ok": False}, P.STEP, 0),
    # The plan was changed while it copied: no more pairs will come.
    (record(P.SHADOWING), {"samples": 0, "verdicts": ()}, P.HOLDING, 1),
    (record(P.STEP), {}, P.HOLDING, 1),
    (record(P.STEP), {"verdicts": ()}, P.HOLDING, 1),  # no gate has seen anything yet
    (record(P.STEP, 1), {"samples": 0}, P.HOLDING, 25),  # its conditions held when it was reached
    (HOLDING, {}, P.HOLDING, 25),
    (HOLDING, {"demand": Demand(1, 2, 20)}, P.STEP, 1),
    (HOLDING, {"demand": None}, P.STEP, 1),
    (record(P.HOLDING, 10), {}, P.HOLDING, 25),  # a human had set a weight between two steps
    (record(P.HOLDING, 25), {}, P.HOLDING, 100),
    (record(P.HOLDING, 100), {}, P.PROMOTED, 100),
    # There is no control arm at 100 %: only the limits count.
    (record(P.HOLDING, 100), {"verdicts": with_(verdict("errors", FAIL))}, P.PROMOTED, 100),
    (HOLDING, {"verdicts": with_(verdict("tokens", FAIL))}, P.AWAITING_APPROVAL, 1),
    (
        HOLDING,
        {"verdicts": with_(verdict("tokens", FAIL)), "now": NOW - 99},
        P.AWAITING_APPROVAL,
        1,
    ),
    (record(P.STEP, 1), {"verdicts": with_(verdict("tokens", FAIL))}, P.AWAITING_APPROVAL, 1),
    (HOLDING, {"verdicts": with_(verdict("errors", FAIL))}, P.ROLLED_BACK, 0),
    (HOLDING, {"evidence_ok": False, "verdicts": (verdict("errors", FAIL),)}, P.ROLLED_BACK, 0),
    (record(P.PAUSED, 25), {"verdicts": (verdict("errors", FAIL),)}, P.ROLLED_BACK, 0),
    (record(P.AWAITING_APPROVAL, 1), {"verdicts": (verdict("errors", FAIL),)}, P.ROLLED_BACK, 0),
    (HOLDING, {"plan": None}, P.ABORTED, 0),
    (HOLDING, {"canary": "gen@3"}, P.ABORTED, 0),
    (HOLDING, {"stable": "gen@0"}, P.ABORTED, 0),
    (HOLDING, {"alias": "other"}, P.ABORTED, 0),
]


@pytest.mark.parametrize(("before", "seen", "phase", "percent"), GOES)
def test_it_goes_where_the_rules_say_and_writes_down_why(
    before: RolloutRecord, seen: dict[str, Any], phase: RolloutPhase, percent: float
) -> None:
    after, decision = advance(before, look(**seen))
    assert (after.phase, after.percent) == (phase, percent)
    assert decision is not None
    assert after.history == (decision,)
    assert (decision.author, decision.number, decision.phase) == ("control", 1, phase)
    assert decision.why
    assert advance(after, look(**seen)) == (after, None)


@pytest.mark.parametrize("phase", [one for one in P if one not in OVER])
@pytest.mark.parametrize("gate", ["limit_errors", "limit_ttft", "limit_e2e"])
def test_a_failing_limit_ends_at_weight_0_in_one_step_whatever_the_phase(
    phase: RolloutPhase, gate: str
) -> None:
    percent = 100 if phase is P.HOLDING else 25
    before = record(phase, percent, accepted=(f"{gate}:failing",))
    after, decision = advance(before, look(verdicts=(verdict(gate, FAIL),), samples=0))
    assert (after.phase, after.percent) == (P.ROLLED_BACK, 0)
    assert decision is not None
    assert decision.verdicts == (verdict(gate, FAIL),)
    assert gate in decision.why
    assert after.kept_until == NOW + PLAN.keep_for_s


@pytest.mark.parametrize("stopped", [{"frozen": "ops-1"}, {"held": "the store is older"}])
@pytest.mark.parametrize(
    "seen", [{}, {"verdicts": (verdict("limit_errors", FAIL),)}, {"plan": None}]
)
@pytest.mark.parametrize("phase", list(P))
def test_nothing_moves_by_itself_under_a_freeze_or_a_hold(
    phase: RolloutPhase, seen: dict[str, Any], stopped: dict[str, str]
) -> None:
    before = record(phase, 25)
    assert advance(before, look(**seen, **stopped)) == (before, None)


@pytest.mark.parametrize("phase", OVER)
def test_what_is_over_never_moves(phase: RolloutPhase) -> None:
    before = record(phase)
    for seen in ({}, {"plan": None}, {"verdicts": (verdict("limit_errors", FAIL),)}):
        assert advance(before, look(**seen)) == (before, None)


def test_quality_that_its_planned_judgements_do_not_decide_needs_a_human() -> None:
    quality = QualityGate(judgements=450)
    plan = PLAN.model_copy(update={"gates": PLAN.gates.model_copy(update={"quality": quality})})
    few = look(plan=plan, verdicts=with_(verdict("quality", W, samples=449)))
    assert advance(HOLDING, few)[1] is None
    enough = look(plan=plan, verdicts=with_(verdict("quality", W, samples=450)))
    assert advance(HOLDING, enough)[0].phase is P.AWAITING_APPROVAL


def test_shadowing_does_not_wait_for_a_judge() -> None:
    gates = PLAN.gates.model_copy(update={"quality": QualityGate()})
    plan = SHADOWED.model_copy(update={"gates": gates})
    seen = look(plan=plan, verdicts=with_(verdict("quality", W, samples=0)))
    assert advance(record(P.SHADOWING), seen)[0].phase is P.HOLDING


def test_what_a_human_accepted_is_not_asked_again_until_it_says_something_else() -> None:
    before = record(P.HOLDING, 1, accepted=("quality:waiting", "tokens:failing"))
    gates = PLAN.gates.model_copy(update={"quality": QualityGate(judgements=30)})
    plan = PLAN.model_copy(update={"gates": gates})
    accepted = with_(verdict("tokens", FAIL), verdict("quality", W))
    assert advance(before, look(plan=plan, verdicts=accepted))[0].percent == 25
    worse = with_(verdict("tokens", FAIL), verdict("quality", FAIL))
    assert advance(before, look(plan=plan, verdicts=worse))[0].phase is P.AWAITING_APPROVAL


def test_what_a_human_accepted_is_asked_again_at_the_next_weight() -> None:
    before = record(P.HOLDING, 1, accepted=("tokens:failing",))
    chatty = with_(verdict("tokens", FAIL))
    after, _ = advance(before, look(verdicts=chatty))
    assert (after.percent, after.accepted) == (25, ())
    assert advance(after, look(verdicts=chatty))[0].phase is P.AWAITING_APPROVAL


@pytest.mark.parametrize("set_back_s", [50.0, 86_400.0])
def test_a_clock_that_is_set_back_lengthens_no_hold(set_back_s: float) -> None:
    seen = look(now=NOW - 100 - set_back_s, elapsed_s=59)
    assert hold_left_s(HOLDING, seen, PLAN) == 1
    assert advance(HOLDING, seen)[1] is None
    assert hold_left_s(HOLDING, replace(seen, elapsed_s=0.0), PLAN) == PLAN.hold_s
    assert advance(HOLDING, replace(seen, elapsed_s=60.0))[0].percent == 25


def test_a_gate_set_to_hold_does_not_roll_back_and_one_set_to_roll_back_does() -> None:
    chatty = with_(verdict("tokens", FAIL))
    assert advance(HOLDING, look(verdicts=chatty))[0].phase is P.AWAITING_APPROVAL
    gates = PLAN.gates.model_copy(update={"tokens": RatioGate(margin_percent=15)})
    strict = PLAN.model_copy(update={"gates": gates})
    assert advance(HOLDING, look(plan=strict, verdicts=chatty))[0].phase is P.ROLLED_BACK


def test_a_plan_with_other_steps_goes_on_from_the_weight() -> None:
    plan = PLAN.model_copy(update={"steps_percent": (0.5, 2.0, 100.0)})
    assert advance(HOLDING, look(plan=plan))[0].percent == 2


def test_the_log_is_bounded_and_its_numbers_have_no_hole() -> None:
    made = HOLDING
    for turn in range(MAX_HISTORY + 5):
        made, _ = decide(made, P.PAUSED, "paused", "x", NOW + turn, author="ops-1")
    numbers = [one.number for one in made.history]
    assert numbers == list(range(6, MAX_HISTORY + 6))
