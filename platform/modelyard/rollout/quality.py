"""The quality gate: judged answers of both arms, looked at three times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from modelyard.config.rollout import QualityGate
from modelyard.rollout.judged_answers import JudgedAnswers, valid_of
from modelyard.rollout.noninferiority import LOOKS, bound, look_at, paired_z, unpaired_z
from modelyard.rollout.outcome import Judgement
from modelyard.rollout.packing import dump, load
from modelyard.rollout.verdict import GateState, Verdict

_ASKS: Final = ("margin_points", "judgements")


class Quality:
    """Judgements that share a pair are compared as pairs once both are there, the others as two
    samples; what decides, at each look, is that of which there were more at the first. A look is
    at just its number of judgements, whatever batches they come in. A decision stands.
    """

    _FIELDS: Final = ("_looks", "_z", "_paired")

    def __init__(self, gate: QualityGate | None) -> None:
        """None: counted for the figures, without a verdict."""
        self._gate = gate
        self._answers = JudgedAnswers()
        self._looks = 0
        self._z = 0.0
        self._paired = False  # of no meaning before the first look
        self._state = GateState.WAITING

    def begin(self) -> None:
        self._answers.begin()

    def counted(self, arm: int) -> tuple[int, int]:
        """Good, and judged."""
        return self._answers.good[arm], self._answers.judged[arm]

    def take(self, judgements: Iterable[Judgement], rollout: str) -> None:
        for one in valid_of(judgements, rollout):
            if self._answers.add(one):
                self._look()

    def verdict(self) -> Verdict | None:
        if self._gate is None:
            return None
        stable, canary = (
            good / judged if judged else None for good, judged in map(self.counted, (0, 1))
        )
        samples = self._samples()
        return Verdict(
            gate="quality",
            state=self._state,
            words=self._words(samples, self._gate),
            stable=stable,
            canary=canary,
            evidence=self._z,
            threshold=bound(max(samples, 1), self._gate.judgements),
            samples=samples,
        )

    def _samples(self) -> int:
        pairs, unpaired = self._answers.pairs.pairs, self._answers.unpaired()
        if not self._looks:
            return max(pairs, unpaired)
        return pairs if self._paired else unpaired

    def _look(self) -> None:
        gate, samples = self._gate, self._samples()
        if gate is None or self._looks == LOOKS or self._state is not GateState.WAITING:
            return
        if samples < look_at(self._looks + 1, gate.judgements):
            return
        if not self._looks:
            self._paired = self._answers.pairs.pairs >= self._answers.unpaired()
        while self._looks < LOOKS and samples >= look_at(self._looks + 1, gate.judgements):
            self._looks += 1
        margin = gate.margin_points / 100
        if self._paired:
            self._z = paired_z(self._answers.pairs, margin, last=self._looks == LOOKS)
        else:
            self._z = unpaired_z(self._answers.votes, margin)
        if abs(self._z) >= bound(samples, gate.judgements):
            self._state = GateState.PASSING if self._z > 0 else GateState.FAILING

    def _words(self, samples: int, gate: QualityGate) -> str:
        of = f"{samples} of {gate.judgements} judgements"
        margin = f"{gate.margin_points:g} points"
        if self._state is GateState.PASSING:
            return f"the canary is shown not to be worse by {margin} or more ({of})"
        if self._state is GateState.FAILING:
            return f"the canary is shown to be worse by more than {margin} ({of})"
        if self._looks == LOOKS:
            return f"undecided at {of}: a human decides"
        return f"{of}; the next look is at {look_at(self._looks + 1, gate.judgements)}"

    def state(self) -> dict[str, Any]:
        return {
            **dump(self, self._FIELDS),
            "answers": self._answers.state(),
            "decided": self._state.value,
            "gate": None if self._gate is None else self._gate.model_dump(mode="json"),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Another plan of the gate is looked at anew, with the judgements there are."""
        load(self, self._FIELDS, state)
        self._answers.restore(state["answers"])
        self._state = GateState(state["decided"])
        old = state["gate"]
        now = None if self._gate is None else self._gate.model_dump(mode="json")
        if old is None or now is None or any(old[key] != now[key] for key in _ASKS):
            self._looks, self._state = 0, GateState.WAITING
            self._look()
