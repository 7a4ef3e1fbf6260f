"""What no sequence of looks and human words may ever make of a rollout."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from modelyard.config.rollout import Gates, Rollout
from modelyard.contract.errors import InvalidRequest
from modelyard.rollout.capacity import Demand
from modelyard.rollout.commands import RolloutVerb, ordered
from modelyard.rollout.look import Look
from modelyard.rollout.machine import advance
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.record import RolloutRecord
from modelyard.rollout.verdict import GateState, Verdict

GATES = ("errors", "tokens", "limit_errors")
STEPS = (1.0, 5.0, 25.0, 100.0)
VERBS: tuple[RolloutVerb, ...] = ("start", "pause", "resume", "approve", "promote", "rollback")


def plan(shadow: bool, automatic: bool) -> Rollout:
    return Rollout(
        id="r-1",
        start="automatic" if automatic else "manual",
        steps_percent=STEPS,
        hold_s=10,
        min_samples=20,
        shadow_percent=10 if shadow else 0,
        shadow_min_pairs=20,
        gates=Gates(ttft=None, e2e=None),
    )


@dataclass(frozen=True)
class Seen:
    states: tuple[GateState, ...]
    samples: int
    ready: int
    shadow: bool
    automatic: bool
    frozen: str


LOOKS = st.builds(
    Seen,
    st.tuples(*(st.sampled_from([GateState.PASSING] * 8 + list(GateState)) for _ in GATES)),
    st.integers(0, 60),
    st.integers(0, 3),
    shadow=st.booleans(),
    automatic=st.booleans(),
    frozen=st.sampled_from(["", "", "", "ops-1"]),
)


class RolloutLife(RuleBasedStateMachine):
    """One rollout; time goes on, evidence comes, humans speak."""

    def __init__(self) -> None:
        super().__init__()
        self.record = RolloutRecord(id="r-1", alias="chat", stable="gen@1", canary="gen@2")
        self.now = 1_000.0

    def look(self, seen: Seen) -> Look:
        return Look(
            now=self.now,
            plan=plan(seen.shadow, seen.automatic),
            alias="chat",
            stable="gen@1",
            canary="gen@2",
            verdicts=tuple(map(Verdict, GATES, seen.states, seen.states)),
            samples=seen.samples,
            demand=Demand(seen.ready, seen.ready * 8, 20),
            frozen=seen.frozen,
        )

    @rule(elapsed_s=st.floats(0.1, 30), seen=LOOKS)
    def time_goes_on(self, elapsed_s: float, seen: Seen) -> None:
        self.now += elapsed_s
        look = self.look(seen)
        before = self.record
        self.record, decision = advance(before, look)
        assert advance(self.record, look) == (self.record, None)
        if look.frozen or before.over:
            assert self.record is before
            return
        if any(one.gate == "limit_errors" for one in look.failing):
            assert self.record.phase is RolloutPhase.ROLLED_BACK
        self.rises_along_steps(before)
        assert (decision is None) == (self.record is before)

    def rises_along_steps(self, before: RolloutRecord) -> None:
        was, percent = before.percent, self.record.percent
        if self.record.phase is RolloutPhase.ROLLED_BACK:
            assert percent == 0
        elif percent != was:
            following = [step for step in STEPS if step > was]
            assert percent == following[0]

    @rule(verb=st.sampled_from(VERBS), seen=LOOKS)
    def a_human_speaks(self, verb: RolloutVerb, seen: Seen) -> None:
        before = self.record
        try:
            self.record = ordered(before, verb, self.look(seen), "ops-1", "x")
        except InvalidRequest:
            return
        turned_back = before.phase is RolloutPhase.PROMOTED and verb == "rollback"
        if before.over and not turned_back:
            assert self.record is before
        if verb == "rollback":
            assert (self.record.percent, self.record.over) == (0, True)

    @precondition(lambda self: self.record.over)
    @rule()
    def it_stays_over(self) -> None:
        states = (GateState.PASSING,) * 3
        look = self.look(Seen(states, 100, 3, shadow=True, automatic=True, frozen=""))
        assert advance(self.record, look) == (self.record, None)

    @invariant()
    def every_decision_is_in_the_log_once(self) -> None:
        numbers = [one.number for one in self.record.history]
        first = self.record.decided - len(numbers) + 1
        assert numbers == list(range(first, self.record.decided + 1))
        if numbers:
            last = self.record.history[-1]
            assert (last.percent, last.phase) == (self.record.percent, self.record.phase)


TestRolloutLife = RolloutLife.TestCase
TestRolloutLife.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
