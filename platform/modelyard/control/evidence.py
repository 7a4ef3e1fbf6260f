"""What control asks of a rollout's evidence. The mathematics is in rollout/evidence.py."""

from __future__ import annotations

from typing import Protocol

from modelyard.config.rollout import Rollout
from modelyard.rollout.arm_figures import ArmFigures
from modelyard.rollout.outcome import OutcomeBatch
from modelyard.rollout.verdict import Verdict


class RolloutEvidence(Protocol):
    """One running rollout's. Pure: the time, unix seconds, is passed in."""

    @property
    def samples(self) -> int:
        """Requests that the canary answered or failed since the step began; pairs in shadowing."""

    def take(self, batch: OutcomeBatch, now: float) -> None:
        """Its own rollout's outcomes; others are ignored, as are malformed ones."""

    def begin_step(self, percent: float, now: float) -> None:
        """The weight has changed, or shadowing has begun: counts of a step start anew."""

    def verdicts(self) -> tuple[Verdict, ...]:
        """One for each gate and limit of the plan."""

    def figures(self) -> tuple[ArmFigures, ...]:
        """Of each arm, for humans."""

    def encode(self) -> bytes: ...


class EvidenceKind(Protocol):
    """Makes evidence. Gates of a plan that changed start anew, the others go on."""

    def __call__(self, plan: Rollout) -> RolloutEvidence: ...

    def decode(self, data: bytes, plan: Rollout) -> RolloutEvidence:
        """Raises ModelyardError or ValueError for what another release wrote."""
