"""The step of a rollout that is looked at, and what makes a verdict of its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.rollout import margin
from modelyard.rollout.arm_totals import CANARY, STABLE, ArmTotals
from modelyard.rollout.budget import log_threshold
from modelyard.rollout.conversations import ENOUGH, FEWEST, Conversations
from modelyard.rollout.mixture import Against, shown
from modelyard.rollout.verdict import GateState, Verdict

Figures = tuple[float | None, float | None]  # of the control arm, of the canary
_NO_CONTROL: Final = "no control arm is left at 100 %: only the limits count"


def is_failing(gate: str, against: Against) -> bool:
    """One slice's evidence of one window: of "worse", and of "by more than the margin"."""
    return against.log_e >= log_threshold(gate) and against.log_margin >= margin.ENOUGH


@dataclass(frozen=True, slots=True)
class Step:
    """The step that is looked at. samples: of the canary; needed: of the plan; now: in seconds."""

    totals: ArmTotals
    conversations: Conversations
    samples: int
    needed: int
    compared: bool
    now: float

    def verdict(
        self, gate: str, against: Against, figures: Figures, words: str, where: str = ""
    ) -> Verdict:
        """Of a gate that compares the arms."""
        if not self.compared:
            return self.alone(gate, against, figures, _NO_CONTROL, failing=False)
        failing = self.fails(gate, against)
        waits = self.samples < self.needed or bool(self._few((STABLE, CANARY)))
        return _verdict(
            gate,
            GateState.FAILING if failing else _unless(waits),
            words if failing else self._few((STABLE, CANARY)) + words,
            figures,
            against,
            self.samples,
            where if failing else "",
        )

    def alone(
        self, gate: str, against: Against, figures: Figures, words: str, *, failing: bool
    ) -> Verdict:
        """Of the canary without a control arm."""
        few = self._few((CANARY,))
        waits = (self.samples < self.needed and self.compared) or bool(few)
        state = GateState.FAILING if failing else _unless(waits)
        return _verdict(gate, state, few + words, figures, against, self.samples)

    def fails(self, gate: str, against: Against) -> bool:
        return is_failing(gate, against) and self.conversations.count(CANARY) >= FEWEST

    def lately(self, against: Against) -> str:
        """Since the window began whose evidence it is."""
        minutes = max(1, round((self.now - against.since) / 60))
        return f"in the last {minutes} min"

    def _few(self, arms: tuple[int, ...]) -> str:
        """Said only when there would be enough requests otherwise."""
        names = ("control arm", "canary")
        arm = min(arms, key=self.conversations.count)
        count = self.conversations.count(arm)
        if count >= ENOUGH or (self.compared and self.samples < self.needed):
            return ""
        return f"only {count} conversations on the {names[arm]}, and {ENOUGH} are needed; "


def _verdict(
    gate: str,
    state: GateState,
    words: str,
    figures: Figures,
    against: Against,
    samples: int,
    where: str = "",
) -> Verdict:
    return Verdict(
        gate=gate,
        state=state,
        words=words,
        stable=figures[STABLE],
        canary=figures[CANARY],
        evidence=shown(against.log_e),
        threshold=shown(log_threshold(gate)),
        samples=samples,
        where=where,
    )


def _unless(waits: bool) -> GateState:
    return GateState.WAITING if waits else GateState.PASSING
