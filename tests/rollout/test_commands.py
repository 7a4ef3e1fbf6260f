"""What humans do to a rollout, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from modelyard.config.rollout import Rollout
from modelyard.contract.errors import InvalidRequest
from modelyard.rollout.capacity import Demand
from modelyard.rollout.commands import RolloutVerb, ordered, set_by_hand
from modelyard.rollout.look import Look
from modelyard.rollout.phases import OVER, RolloutPhase
from modelyard.rollout.record import RolloutRecord
from modelyard.rollout.verdict import GateState, Verdict

P = RolloutPhase
PLAN = Rollout(id="r-1", keep_for_s=600)
SHADOWED = Rollout(id="r-1", shadow_percent=10)
LOOK = Look(
    now=1_000.0,
    plan=PLAN,
    alias="chat",
    stable="gen@1",
    canary="gen@2",
    verdicts=(
        Verdict("tokens", GateState.FAILING, "twice as chatty"),
        Verdict("limit_errors", GateState.FAILING, "too many"),
    ),
    demand=Demand(1, 8, 0),
)


@dataclass(frozen=True)
class Ops:
    author: str = "ops-1"
    reason: str = "because"
    now: float = 1_000.0


def record(phase: RolloutPhase, percent: float = 0.0) -> RolloutRecord:
    names = {"id": "r-1", "alias": "chat", "stable": "gen@1", "canary": "gen@2"}
    return RolloutRecord(**names, phase=phase, percent=percent)


DONE: list[tuple[RolloutPhase, float, RolloutVerb, RolloutPhase, float]] = [
    (P.PENDING, 0, "start", P.STEP, 0),
    (P.HOLDING, 5, "pause", P.PAUSED, 5),
    (P.PAUSED, 5, "resume", P.HOLDING, 5),
    (P.PAUSED, 0, "resume", P.STEP, 0),
    (P.AWAITING_APPROVAL, 5, "approve", P.HOLDING, 5),
    (P.HOLDING, 5, "promote", P.PROMOTED, 100),
    (P.AWAITING_APPROVAL, 5, "promote", P.PROMOTED, 100),
    (P.HOLDING, 5, "rollback", P.ROLLED_BACK, 0),
    (P.PENDING, 0, "rollback", P.ROLLED_BACK, 0),
]


@pytest.mark.parametrize(("phase", "percent", "verb", "then", "weight"), DONE)
def test_a_verb_takes_it_where_it_says_under_its_authors_name(
    phase: RolloutPhase, percent: float, verb: RolloutVerb, then: RolloutPhase, weight: float
) -> None:
    after = ordered(record(phase, percent), verb, LOOK, "ops-1", "because")
    assert (after.phase, after.percent) == (then, weight)
    assert (after.author, after.reason) == ("ops-1", "because")
    assert after.history[-1].author == "ops-1"


def test_a_start_and_a_resume_go_to_shadowing_where_the_plan_has_it() -> None:
    look = replace(LOOK, plan=SHADOWED)
    for phase, verb in ((P.PENDING, "start"), (P.PAUSED, "resume")):
        after = ordered(record(phase), verb, look, "ops-1", "x")  # type: ignore[arg-type]
        assert (after.phase, after.weight_since) == (P.SHADOWING, LOOK.now)


REFUSED: list[tuple[RolloutPhase, RolloutVerb]] = [
    (P.HOLDING, "start"),
    (P.HOLDING, "resume"),
    (P.PENDING, "approve"),
    (P.HOLDING, "approve"),
    (P.PENDING, "pause"),  # its resume would begin what nobody started
]


@pytest.mark.parametrize(("phase", "verb"), REFUSED)
def test_a_verb_that_its_phase_does_not_allow_is_refused(
    phase: RolloutPhase, verb: RolloutVerb
) -> None:
    with pytest.raises(InvalidRequest, match=phase.value) as caught:
        ordered(record(phase), verb, LOOK, "ops-1", "x")
    assert caught.value.reason == "phase"


@pytest.mark.parametrize("phase", sorted(OVER))
@pytest.mark.parametrize("verb", ["start", "resume", "approve"])
def test_what_is_over_takes_no_word(phase: RolloutPhase, verb: RolloutVerb) -> None:
    with pytest.raises(InvalidRequest, match="another id"):
        ordered(record(phase), verb, LOOK, "ops-1", "x")


def test_what_is_so_already_changes_nothing() -> None:
    for phase, verb in ((P.PAUSED, "pause"), (P.PROMOTED, "promote"), (P.ROLLED_BACK, "rollback")):
        before = record(phase)
        assert ordered(before, verb, LOOK, "ops-1", "x") is before  # type: ignore[arg-type]


def test_an_approval_accepts_what_was_shown_and_no_limit() -> None:
    after = ordered(record(P.AWAITING_APPROVAL, 5), "approve", LOOK, "ops-1", "we know")
    assert after.accepted == ("tokens:failing",)


def test_nobody_is_sent_to_a_version_that_has_no_replica() -> None:
    look = replace(LOOK, demand=Demand(0, 0, 0))
    with pytest.raises(InvalidRequest, match="no ready replica, so requests would fail"):
        ordered(record(P.HOLDING, 5), "promote", look, "ops-1", "x")


@pytest.mark.parametrize("demand", [Demand(0, 0, 0), Demand(1, 8, 9)])
def test_all_requests_go_by_hand_only_where_there_is_room_for_them(demand: Demand) -> None:
    look = replace(LOOK, demand=demand)
    before = record(P.HOLDING, 5)
    for finish in (False, True):
        with pytest.raises(InvalidRequest) as caught:
            set_by_hand(before, 100, finish, look, Ops())
        assert caught.value.reason == "no_capacity"
    with pytest.raises(InvalidRequest, match=r"--value [12] --for 3600"):
        ordered(before, "promote", look, "ops-1", "x")
    assert set_by_hand(before, 50, False, look, Ops()).percent == 50
    unknown = replace(LOOK, demand=None)
    assert ordered(before, "promote", unknown, "ops-1", "x").percent == 100


def test_a_promotion_is_turned_back_while_the_table_has_it_and_stable_can_take_it() -> None:
    promoted = record(P.PROMOTED, 100)
    look = replace(LOOK, stable_demand=Demand(1, 8, 40))
    after = ordered(promoted, "rollback", look, "ops-1", "x")
    assert (after.phase, after.percent) == (P.ROLLED_BACK, 0)
    assert after.kept_until == LOOK.now + PLAN.keep_for_s
    for changes in ({"plan": None}, {"stable": "gen@0"}, {"canary": "gen@3"}):
        with pytest.raises(InvalidRequest, match="is over"):
            ordered(promoted, "rollback", replace(look, **changes), "ops-1", "x")
    nobody = replace(look, stable_demand=Demand(0, 0, 0))
    with pytest.raises(InvalidRequest, match="gen@1 has no ready replica") as caught:
        ordered(promoted, "rollback", nobody, "ops-1", "x")
    assert caught.value.reason == "no_capacity"


def test_humans_act_under_a_freeze() -> None:
    look = replace(LOOK, frozen="ops-2")
    assert ordered(record(P.HOLDING, 5), "rollback", look, "ops-1", "x").over


def test_a_rollback_needs_no_table() -> None:
    look = replace(LOOK, plan=None)
    after = ordered(record(P.HOLDING, 5), "rollback", look, "ops-1", "x")
    assert (after.phase, after.kept_until) == (P.ROLLED_BACK, LOOK.now)
    with pytest.raises(InvalidRequest, match="no longer has"):
        ordered(record(P.PAUSED, 5), "resume", look, "ops-1", "x")


@pytest.mark.parametrize(
    ("percent", "finish", "then"),
    [
        (10, False, P.PAUSED),
        (0, False, P.PAUSED),
        (0, True, P.ROLLED_BACK),
        (100, True, P.PROMOTED),
    ],
)
def test_a_weight_by_hand_pauses_it_or_ends_it(
    percent: float, finish: bool, then: RolloutPhase
) -> None:
    after = set_by_hand(record(P.HOLDING, 25), percent, finish, LOOK, Ops())
    assert (after.phase, after.percent, after.author) == (then, percent, "ops-1")
    assert after.weight_since == Ops.now
    kept_until = 1_600.0 if then is P.ROLLED_BACK else None
    assert after.kept_until == kept_until
