"""The plan of a rollout: who gets the canary, in which steps, and what must hold at each."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Alias, Frozen, Seconds, TenantName

RolloutId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,32}$")]
OnFail = Literal["rollback", "hold"]
Percent = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
Margin = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]

MAX_LABELS: Final = 8
MAX_STEPS: Final = 20
MAX_KEEP_S: Final = 7 * 86_400.0


class PointsGate(Frozen):
    """A share of requests that may be higher by so many percentage points.

    on_fail: `rollback` acts by itself, `hold` waits for a human with the evidence shown.
    """

    margin_points: Margin
    on_fail: OnFail = "rollback"


class RatioGate(Frozen):
    """A figure of the canary that may be above the control arm's by so many percent of it."""

    margin_percent: Margin
    on_fail: OnFail = "rollback"


class QualityGate(Frozen):
    """The share of good answers, which may be lower by so many points.

    judgements: how many the test is planned for, pairs where there are pairs, else of each arm.
    bad_labels: labels of /v1/feedback that say an answer was bad.
    """

    margin_points: Margin = 5.0
    on_fail: OnFail = "hold"
    judgements: int = Field(default=450, ge=30, le=100_000)
    bad_labels: tuple[Label, ...] = ()


class Gates(Frozen):
    """What is compared with the control arm. None: not looked at.

    errors: server errors, timeouts and cancellations by the server. ttft and e2e: the 95th
    percentile. tokens: of an answer. quality: off until there are judgements to come.
    """

    errors: PointsGate | None = PointsGate(margin_points=0.5)
    ttft: RatioGate | None = RatioGate(margin_percent=10)
    e2e: RatioGate | None = RatioGate(margin_percent=10)
    tokens: RatioGate | None = RatioGate(margin_percent=15, on_fail="hold")
    quality: QualityGate | None = None


class SafetyLimits(Frozen):
    """What the canary must never be, whatever the gates say: beyond it, it is rolled back."""

    errors_percent: Percent = 5.0
    ttft_p95_s: Seconds | None = None
    e2e_p95_s: Seconds | None = None


class Judge(Frozen):
    """Who judges sampled answers: a model of this platform, or an HTTP hook. One of the two.

    Only of tenants that agreed (`tenants.NAME.judged`). rubric: what a good answer is.
    """

    model: Alias | None = None
    url: str | None = Field(default=None, pattern=r"^https?://[^\s@]+$", max_length=500)
    sample_percent: Percent = 20.0
    timeout_s: Seconds = 30.0
    rubric: str = Field(
        default="The answer is correct, complete and polite.", min_length=1, max_length=4000
    )

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if (self.model is None) == (self.url is None):
            raise ValueError("judge needs either model or url: give one of them")
        return self


class Rollout(Frozen):
    """One rollout; its weight is control's, never a file's (design decision 7).

    start: `manual` waits for `modelyard rollout start`. steps_percent: of conversations; the last
    is 100. hold_s and min_samples (requests that the canary answered): what a step lasts at least.
    conversations: `turn`, one may change its arm between turns as the weight grows; `pin`, it
    stays with the version that began it. tenants: who may be on the canary; left out, everybody
    who may use the arm. labels: values of X-Traffic-Label whose requests are looked at apart.
    shadow_percent: of the stable version's requests, copied to the canary before its first step,
    until shadow_min_pairs have been compared. keep_for_s: how long a rolled back canary keeps its
    replicas, for debugging.
    """

    id: RolloutId
    start: Literal["manual", "automatic"] = "manual"
    steps_percent: tuple[Percent, ...] = Field(
        default=(1, 5, 25, 50, 100), min_length=1, max_length=MAX_STEPS
    )
    hold_s: Seconds = 600.0
    min_samples: int = Field(default=300, ge=1, le=1_000_000)
    conversations: Literal["turn", "pin"] = "turn"
    tenants: tuple[TenantName, ...] | None = None
    labels: tuple[Label, ...] = Field(default=(), max_length=MAX_LABELS)
    shadow_percent: float = Field(default=0.0, ge=0, le=100, allow_inf_nan=False)
    shadow_min_pairs: int = Field(default=200, ge=1, le=100_000)
    keep_for_s: float = Field(default=3600.0, ge=0, le=MAX_KEEP_S, allow_inf_nan=False)
    gates: Gates = Gates()
    limits: SafetyLimits = SafetyLimits()
    judge: Judge | None = None

    @model_validator(mode="after")
    def _steps_rise_to_all(self) -> Self:
        steps = self.steps_percent
        if steps[-1] != 100 or any(a >= b for a, b in pairwise(steps)):
            raise ValueError("steps_percent must rise, and end with 100: write [1, 5, 25, 50, 100]")
        return self
