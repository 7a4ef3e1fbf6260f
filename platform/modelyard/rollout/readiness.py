"""Whether a step has lasted long enough and its gates let the canary go on. Pure."""

from __future__ import annotations

from typing import Final

from modelyard.config.rollout import Rollout
from modelyard.rollout.capacity import capacity_for
from modelyard.rollout.look import LIMIT, Look, is_limit, on_fail
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.record import RolloutRecord
from modelyard.rollout.verdict import GateState, Verdict

QUALITY: Final = "quality"
_NO_REPORTS: Final = "reports: no ingress has told control what happens"
GATES: Final = ("errors", "ttft", "e2e", "tokens", QUALITY)


def next_percent(plan: Rollout, percent: float) -> float | None:
    """The step above a weight; None at 100. By the weight and not by a number of the step: the
    plan's steps may have changed, and a human may have set a weight between two."""
    return next((step for step in plan.steps_percent if step > percent), None)


def step_of(plan: Rollout, percent: float) -> int | None:
    """The last step reached, from 0; None before the first."""
    reached = sum(1 for step in plan.steps_percent if step <= percent)
    return reached - 1 if reached else None


def rolls_back(record: RolloutRecord, look: Look, plan: Rollout) -> Verdict | None:
    """The verdict that ends it, a safety limit first."""
    failing = sorted(look.failing, key=lambda one: not is_limit(one.gate))
    return next(
        (
            one
            for one in failing
            if is_limit(one.gate)
            or (
                _is_compared(record, one.gate)
                and on_fail(plan, one.gate) == "rollback"
                and _named(one) not in record.accepted
            )
        ),
        None,
    )


def needs_human(record: RolloutRecord, look: Look, plan: Rollout) -> Verdict | None:
    """A gate that fails and may not act by itself, or quality that its planned number of judgements
    did not decide. None for what a human has accepted."""
    for one in look.verdicts:
        if not _is_compared(record, one.gate) or _named(one) in record.accepted:
            continue
        if one.state is GateState.FAILING or _is_undecided(one, plan):
            return one
    return None


def waits_for(record: RolloutRecord, look: Look, plan: Rollout) -> str:
    """What a step (or shadowing) still lacks, one sentence; empty when it may end."""
    if not look.evidence_ok:
        return _NO_REPORTS
    if record.phase is RolloutPhase.SHADOWING:
        if not plan.shadow_percent:  # the plan was changed: no more pairs will come
            return ""
        if look.samples < plan.shadow_min_pairs or look.now <= record.weight_since:
            return f"pairs: {look.samples} of {plan.shadow_min_pairs} were compared"
    else:
        if (left_s := hold_left_s(record, look, plan)) > 0:
            return f"the hold: {left_s:.0f} s of {plan.hold_s:g} are left"
        if look.samples < plan.min_samples:
            return f"requests: the canary answered {look.samples} of {plan.min_samples}"
    return _undecided_gates(record, look, plan)


def hold_left_s(record: RolloutRecord, look: Look, plan: Rollout) -> float:
    """From hold_s down to 0, also where somebody has set the clock back."""
    elapsed_s = max(look.now - record.weight_since, look.elapsed_s, 0.0)
    return max(plan.hold_s - elapsed_s, 0.0)


def step_waits_for(record: RolloutRecord, look: Look, plan: Rollout, percent: float) -> str:
    """What the next weight lacks; empty when it may be set. What let the step before end may have
    gone while replicas were waited for. No gate has seen anything before the first weight."""
    if not look.evidence_ok:
        return _NO_REPORTS
    if record.percent > 0 and (undecided := _undecided_gates(record, look, plan)):
        return undecided
    if look.demand is None:
        return "the board's word on replicas"
    return capacity_for(percent, look.demand).words


def accepted_by(record: RolloutRecord, look: Look, plan: Rollout) -> tuple[str, ...]:
    """What an approval lets pass at this weight: exactly what was shown, never a limit."""
    shown = {
        _named(one)
        for one in look.verdicts
        if not is_limit(one.gate) and (one.state is GateState.FAILING or _is_undecided(one, plan))
    }
    return tuple(sorted(shown | set(record.accepted)))


def _undecided_gates(record: RolloutRecord, look: Look, plan: Rollout) -> str:
    states = {one.gate: one for one in look.verdicts}
    for gate in GATES:
        if getattr(plan.gates, gate) is None or not _is_compared(record, gate):
            continue
        if gate == QUALITY and record.phase is RolloutPhase.SHADOWING:
            continue  # shadow answers may have no judge; the steps wait for one
        verdict = states.get(gate)
        if verdict is None:
            return f"the gate {gate}: it has not looked yet"
        if verdict.state is not GateState.PASSING and _named(verdict) not in record.accepted:
            return f"the gate {gate}: {verdict.words}"
    waiting = (one for one in look.verdicts if is_limit(one.gate))
    return next(
        (
            f"the limit {one.gate.removeprefix(LIMIT)}: {one.words}"
            for one in waiting
            if one.state is GateState.WAITING
        ),
        "",
    )


def _is_compared(record: RolloutRecord, gate: str) -> bool:
    """At 100 % no request goes to the control arm any more: only the limits mean something."""
    return is_limit(gate) or record.percent < 100


def _is_undecided(one: Verdict, plan: Rollout) -> bool:
    quality = plan.gates.quality
    return (
        one.gate == QUALITY
        and one.state is GateState.WAITING
        and quality is not None
        and one.samples >= quality.judgements
    )


def _named(one: Verdict) -> str:
    return f"{one.gate}:{one.state}"
