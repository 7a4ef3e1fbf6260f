"""Evidence that says what a test's requests are made to say, with no statistics in it."""

from __future__ import annotations

import json
from typing import Final

from modelyard.config.rollout import Rollout
from modelyard.rollout.arm_figures import ArmFigures
from modelyard.rollout.outcome import Outcome, OutcomeArm, OutcomeBatch
from modelyard.rollout.verdict import GateState, Verdict

FAILURES: Final = 3  # of the canary, since the step began, and a limit fails
CHATTY_TOKENS: Final = 1000  # one answer of so many, and the gate `tokens` fails


class ScriptedEvidence:
    """`errors` passes, `limit_errors` and `tokens` fail by the numbers above."""

    def __init__(self, plan: Rollout) -> None:
        self.plan = plan
        self.percent = -1.0
        self.samples = 0
        self.failed = 0
        self.chatty = False
        self.judged = 0
        self.batches: list[int] = []

    def take(self, batch: OutcomeBatch, now: float) -> None:
        self.batches.append(batch.number)
        self.judged += sum(1 for one in batch.judgements if one.rollout == self.plan.id)
        for one in batch.outcomes:
            if one.rollout == self.plan.id and one.arm != "stable" and not one.cancelled:
                self.samples += 1
                self.failed += one.failed
                self.chatty = self.chatty or one.output_tokens >= CHATTY_TOKENS

    def begin_step(self, percent: float, now: float) -> None:
        self.percent, self.samples, self.failed = percent, 0, 0

    def verdicts(self) -> tuple[Verdict, ...]:
        limit = GateState.FAILING if self.failed >= FAILURES else GateState.PASSING
        tokens = GateState.FAILING if self.chatty else GateState.PASSING
        evidence = float("inf") if self.failed >= FAILURES else 0.0
        return (
            Verdict("errors", GateState.PASSING, "as the stable version", samples=self.samples),
            Verdict("ttft", GateState.PASSING, "as the stable version"),
            Verdict("e2e", GateState.PASSING, "as the stable version"),
            Verdict("tokens", tokens, "twice as chatty" if self.chatty else "as chatty"),
            Verdict("limit_errors", limit, f"{self.failed} failed", evidence=evidence),
        )

    def figures(self) -> tuple[ArmFigures, ...]:
        times = (None, None, None, None, None)
        return (
            ArmFigures("canary", self.samples, self.failed, 0, *times, None, 0, 0, 0, self.judged),
        )

    def encode(self) -> bytes:
        kept = [self.percent, self.samples, self.failed, self.chatty, self.judged, self.batches]
        return json.dumps(kept).encode()

    @classmethod
    def decode(cls, data: bytes, plan: Rollout) -> ScriptedEvidence:
        made = cls(plan)
        made.percent, made.samples, made.failed, made.chatty, made.judged, made.batches = (
            json.loads(data)
        )
        return made


def outcome(
    rollout: str, arm: OutcomeArm = "canary", *, failed: bool = False, output_tokens: int = 10
) -> Outcome:
    return Outcome(
        rollout=rollout,
        arm=arm,
        tier="paid",
        label="",
        conversation="",
        code="internal" if failed else "ok",
        failed=failed,
        cancelled=False,
        ttft_s=None,
        e2e_s=0.1,
        output_tokens=output_tokens,
    )
