"""What a human compares: one arm's figures since the step began."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """arm: `stable`, `canary` or `shadow`. requests: answered or failed, of those that were
    reported. error_share: of them. cancelled: by their clients. tokens_per_answer: the mean.
    matches of compared: shadow copies with the same answer. good of judged: in the whole rollout.
    """

    arm: str
    requests: int
    failed: int
    cancelled: int
    error_share: float | None
    ttft_p50_s: float | None
    ttft_p95_s: float | None
    e2e_p50_s: float | None
    e2e_p95_s: float | None
    tokens_per_answer: float | None
    matches: int
    compared: int
    good: int
    judged: int
