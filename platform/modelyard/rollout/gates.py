"""What each gate says, of the evidence there is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from modelyard.config.rollout import PointsGate, RatioGate
from modelyard.rollout import histogram
from modelyard.rollout.arm_totals import CANARY, STABLE, ArmTotals
from modelyard.rollout.budget import log_threshold
from modelyard.rollout.limit import Limit
from modelyard.rollout.mixture import shown
from modelyard.rollout.tokens import TokenCounts
from modelyard.rollout.verdict import GateState, Verdict

_P95: Final = 0.95
_NO_CONTROL: Final = "no control arm is left at 100 %: only the limits count"


@dataclass(frozen=True, slots=True)
class Step:
    """The step whose figures are compared. samples: of the canary; needed: of the plan."""

    totals: ArmTotals
    samples: int
    needed: int
    compared: bool

    def verdict(
        self,
        gate: str,
        log_evidence: float,
        figures: tuple[float | None, float | None],
        words: str,
        *,
        worse: bool,
        where: str = "",
    ) -> Verdict:
        """FAILING with the evidence and worse by more than the margin: enough requests make a
        difference that matters to nobody significant."""
        failing = self.compared and worse and log_evidence >= log_threshold(gate)
        enough = self.samples >= self.needed or not self.compared
        otherwise = GateState.PASSING if enough else GateState.WAITING
        return Verdict(
            gate=gate,
            state=GateState.FAILING if failing else otherwise,
            words=words if self.compared else _NO_CONTROL,
            stable=figures[STABLE],
            canary=figures[CANARY],
            evidence=shown(log_evidence),
            threshold=shown(log_threshold(gate)),
            samples=self.samples,
            where=where if failing else "",
        )


def errors(step: Step, gate: PointsGate, evidence: tuple[float, int], where: str) -> Verdict:
    """where: the slice's name; the figures are that slice's once the evidence suffices."""
    slice_ = _slice("errors", evidence)
    shares = tuple(_share(*step.totals.errors(arm, slice_)) for arm in (STABLE, CANARY))
    stable, canary = shares
    known = stable is not None and canary is not None
    worse = known and (canary or 0.0) - (stable or 0.0) > gate.margin_points / 100
    words = (
        f"{_percent(canary)} of the canary's requests failed and {_percent(stable)} of the control "
        f"arm's; {gate.margin_points:g} points more are allowed"
    )
    return step.verdict("errors", evidence[0], (stable, canary), words, worse=worse, where=where)


def latency(
    step: Step, kind: str, gate: RatioGate, evidence: tuple[float, int], where: str
) -> Verdict:
    """kind: `ttft` or `e2e`."""
    slice_ = _slice(kind, evidence)
    stable, canary = (
        histogram.quantile_s(step.totals.seconds(kind, arm, slice_), _P95)
        for arm in (STABLE, CANARY)
    )
    words = (
        f"the p95 is {_seconds(canary)} on the canary and {_seconds(stable)} on the control arm; "
        f"{gate.margin_percent:g} % more is allowed"
    )
    worse = _exceeds(canary, stable, gate)
    return step.verdict(kind, evidence[0], (stable, canary), words, worse=worse, where=where)


def tokens(step: Step, gate: RatioGate, counts: TokenCounts, name: str) -> Verdict:
    """name: of the slice. A difference inside the margin may be shown before enough samples."""
    evidence = counts.evidence()
    slice_ = _slice("tokens", evidence)
    stable, canary = (
        None if mean is None else math.expm1(mean)
        for mean in (counts.mean(arm, slice_) for arm in (STABLE, CANARY))
    )
    inside = counts.log_inside() >= log_threshold("tokens")
    words = (
        f"a typical answer has {_count(canary)} tokens on the canary and {_count(stable)} on the "
        f"control arm; {gate.margin_percent:g} % more is allowed"
        + (", and it is shown to be inside" if inside else "")
    )
    worse = (
        stable is not None
        and canary is not None
        and canary + 1 > (stable + 1) * (1 + gate.margin_percent / 100)
    )
    return step.verdict("tokens", evidence[0], (stable, canary), words, worse=worse, where=name)


def limit_errors(step: Step, limit: Limit) -> Verdict:
    stable, canary = (_share(*step.totals.errors(arm)) for arm in (STABLE, CANARY))
    words = (
        f"{_percent(canary)} of the canary's requests failed; the limit is {_percent(limit.limit)}"
    )
    worse = canary is not None and canary > limit.limit
    return _limit(step, "limit_errors", limit, (stable, canary), words, worse)


def limit_latency(step: Step, kind: str, limit: Limit, seconds: float) -> Verdict:
    stable, canary = (
        histogram.quantile_s(step.totals.seconds(kind, arm), _P95) for arm in (STABLE, CANARY)
    )
    words = f"the canary's p95 is {_seconds(canary)}; the limit is {seconds:g} s"
    worse = canary is not None and canary > seconds
    return _limit(step, f"limit_{kind}", limit, (stable, canary), words, worse)


def _limit(
    step: Step,
    gate: str,
    limit: Limit,
    figures: tuple[float | None, float | None],
    words: str,
    worse: bool,
) -> Verdict:
    alone = Step(step.totals, step.samples, step.needed, compared=True)
    return alone.verdict(gate, limit.evidence(), figures, words, worse=worse)


def _slice(gate: str, evidence: tuple[float, int]) -> int:
    """All requests, until the evidence suffices."""
    log_evidence, slice_ = evidence
    return slice_ if log_evidence >= log_threshold(gate) else 0


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _exceeds(canary: float | None, stable: float | None, gate: RatioGate) -> bool:
    return (
        canary is not None
        and stable is not None
        and canary > stable * (1 + gate.margin_percent / 100)
    )


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.2f} %"


def _seconds(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3g} s"


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"
