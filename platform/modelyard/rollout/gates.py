"""What each gate says, of the evidence there is."""

from __future__ import annotations

import math
from typing import Final

from modelyard.config.rollout import PointsGate, RatioGate
from modelyard.rollout import histogram, margin
from modelyard.rollout.arm_totals import CANARY, STABLE, ArmTotals
from modelyard.rollout.budget import log_threshold
from modelyard.rollout.limit import Limit
from modelyard.rollout.mixture import Against
from modelyard.rollout.step import Step
from modelyard.rollout.tokens import TokenCounts
from modelyard.rollout.verdict import Verdict

_P95: Final = 0.95
_LONGER: Final = 1.1  # answers, so that a request's duration says it too


def errors(step: Step, gate: PointsGate, against: Against, where: str) -> Verdict:
    """where: the slice's name. Once it fails, the figures are those of the slice and the window."""
    when, figures = "", (_share(*step.totals.errors(STABLE)), _share(*step.totals.errors(CANARY)))
    if step.compared and step.fails("errors", against):
        when, figures = f" {step.lately(against)}", margin.rates_of(against.tallies)
    words = (
        f"{_percent(figures[CANARY])} of the canary's requests failed{when} and "
        f"{_percent(figures[STABLE])} of the control arm's; "
        f"{gate.margin_points:g} points more are allowed{_inside('errors', against)}"
    )
    return step.verdict("errors", against, figures, words, where)


def latency(step: Step, kind: str, gate: RatioGate, against: Against, where: str) -> Verdict:
    """kind: `ttft` or `e2e`. The figures are the step's, of the slice that fails or of all."""
    slice_ = against.slice_ if step.fails(kind, against) else 0
    stable, canary = (
        histogram.quantile_s(step.totals.seconds(kind, arm, slice_), _P95)
        for arm in (STABLE, CANARY)
    )
    if stable is None or canary is None:
        words = f"not judged: nothing was {'streamed' if kind == 'ttft' else 'answered'}"
        arm = {(True, False): " by the control arm", (False, True): " by the canary"}
        words += arm.get((stable is None, canary is None), "")
    else:
        words = (
            f"the p95 is {_seconds(canary)} on the canary and {_seconds(stable)} on the "
            f"control arm; {gate.margin_percent:g} % more is allowed{_inside(kind, against)}"
        )
        if step.fails(kind, against):
            words += f", and it was more {step.lately(against)}"
        words += _longer(step.totals) if kind == "e2e" else ""
    return step.verdict(kind, against, (stable, canary), words, where)


def tokens(step: Step, gate: RatioGate, counts: TokenCounts, name: str) -> Verdict:
    """name: of the slice. A difference inside the margin may be shown before enough samples."""
    against = counts.against()
    slice_ = against.slice_ if step.fails("tokens", against) else 0
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
    return step.verdict("tokens", against, (stable, canary), words, name)


def limit_errors(step: Step, limit: Limit) -> Verdict:
    def words(share: float | None, when: str) -> str:
        return f"{_percent(share)} of the canary's requests failed{when}; the limit is " + _percent(
            limit.limit
        )

    figures = (_share(*step.totals.harms(STABLE)), _share(*step.totals.harms(CANARY)))
    against = limit.against(log_threshold("limit_errors"))
    failing = step.fails("limit_errors", against)
    if not failing:
        return step.alone(
            "limit_errors", against, figures, words(figures[CANARY], ""), failing=False
        )
    happened, at_risk = against.tallies
    share = happened / at_risk
    when = f" {step.lately(against)}, the first of each conversation"
    return step.alone(
        "limit_errors", against, (figures[STABLE], share), words(share, when), failing=True
    )


def limit_latency(step: Step, kind: str, limit: Limit, seconds: float) -> Verdict:
    gate = f"limit_{kind}"
    stable, canary = (
        histogram.quantile_s(step.totals.seconds(kind, arm), _P95) for arm in (STABLE, CANARY)
    )
    against = limit.against(log_threshold(gate))
    failing = step.fails(gate, against)
    words = (
        f"not judged: nothing was {'streamed' if kind == 'ttft' else 'answered'} by the canary"
        if canary is None
        else f"the canary's p95 is {_seconds(canary)}; the limit is {seconds:g} s"
    )
    if failing:
        happened, at_risk = against.tallies
        words += f", and {_percent(happened / at_risk)} took longer {step.lately(against)}"
    return step.alone(gate, against, (stable, canary), words, failing=failing)


def _inside(gate: str, against: Against) -> str:
    """What a reader asks who sees evidence above its threshold."""
    worse = against.log_e >= log_threshold(gate)
    return ", and more is not shown" if worse and against.log_margin < margin.ENOUGH else ""


def _longer(totals: ArmTotals) -> str:
    """A chatty canary takes longer, too: what to look at first."""
    stable, canary = totals.tokens_per_answer(STABLE), totals.tokens_per_answer(CANARY)
    if not stable or not canary or 1 / _LONGER <= canary / stable <= _LONGER:
        return ""
    return f"; its answers are also {canary / stable:.1f} times as long"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.2f} %"


def _seconds(value: float) -> str:
    return f"{value:.3g} s"


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f}"
