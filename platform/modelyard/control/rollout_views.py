"""Rollouts as an operator sees them: plain data, times as seconds left or ago. Pure."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

from modelyard.control.evidence_shelf import OneRollout
from modelyard.control.rollout_states import Planned
from modelyard.rollout.capacity import capacity_for
from modelyard.rollout.look import Look, on_fail
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.readiness import (
    hold_left_s,
    next_percent,
    step_of,
    step_waits_for,
    waits_for,
)
from modelyard.rollout.record import RolloutRecord
from modelyard.rollout.verdict import Verdict


def view(
    record: RolloutRecord, planned: Planned | None, look: Look, one: OneRollout | None
) -> dict[str, Any]:
    """The table that a human decides from. planned: None for one that only the state knows."""
    now = look.now
    plan = planned.plan if planned is not None else None
    if record.over and record.history:  # what it ended on stays to be looked at
        last = record.history[-1]
        look = replace(look, verdicts=last.verdicts, figures=last.figures)
    shown: dict[str, Any] = {
        "id": record.id,
        "alias": record.alias,
        "stable": record.stable,
        "canary": record.canary,
        "phase": record.phase,
        "step": None if plan is None else step_of(plan, record.percent),
        "steps_percent": [] if plan is None else list(plan.steps_percent),
        "percent": record.percent,
        "since_s": round(max(now - record.since, 0.0), 1) if record.begun else 0.0,
        "left_s": _hold_left_s(record, look),
        "samples": look.samples,
        "min_samples": _min_samples(record, look),
        "waits_for": waiting_for(record, look),
        "frozen": look.frozen,
        "held": look.held,
        "arms": [asdict(figure) for figure in look.figures],
        "gates": [_gate(record, look, verdict) for verdict in look.verdicts],
        "capacity": _capacity(record, look),
        "author": record.author,
        "reason": record.reason,
        "kept_for_s": None if record.kept_until is None else max(record.kept_until - now, 0.0),
        "evidence_age_s": _age_s(one, now),
        "shadow_percent": 0.0 if plan is None else plan.shadow_percent,
        "start": None if plan is None else plan.start,
        "in_table": planned is not None,
    }
    plain: dict[str, Any] = finite(shown)
    return plain


def history(record: RolloutRecord, now: float) -> list[dict[str, Any]]:
    """Oldest first. A hole in the numbers is a bug; the first ones go when there are too many."""
    shown = [
        {
            "number": one.number,
            "at_s_ago": round(max(now - one.at, 0.0), 1),
            "author": one.author,
            "what": one.what,
            "why": one.why,
            "percent": one.percent,
            "phase": one.phase,
            "verdicts": [asdict(verdict) for verdict in one.verdicts],
            "arms": [asdict(figure) for figure in one.figures],
        }
        for one in record.history
    ]
    plain: list[dict[str, Any]] = finite(shown)
    return plain


def waiting_for(record: RolloutRecord, look: Look) -> str:
    """One sentence; empty for what is over."""
    if record.over:
        return ""
    own = _own_wait(record, look)
    also = f", and then for {own}" if own else ""
    if look.held:
        return f"a human: rollouts are held, look at the weights and release the hold{also}"
    return f"the end of a freeze by {look.frozen}{also}" if look.frozen else own


def _own_wait(record: RolloutRecord, look: Look) -> str:
    """What it waits for where nothing stops everything."""
    plan = look.plan
    match record.phase:
        case RolloutPhase.PENDING:
            return "its start by a human" if plan and plan.start == "manual" else ""
        case RolloutPhase.PAUSED:
            return f"a human to resume it: {record.reason}"
        case RolloutPhase.AWAITING_APPROVAL:
            return f"a human to approve it or roll it back: {record.reason}"
    if plan is None:
        return ""
    if record.phase is RolloutPhase.STEP:
        percent = next_percent(plan, record.percent)
        return step_waits_for(record, look, plan, percent) if percent is not None else ""
    return waits_for(record, look, plan)


def finite(value: Any) -> Any:
    """JSON has no infinity: an e-value beyond every number is None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return value


def _age_s(one: OneRollout | None, now: float) -> float | None:
    return None if one is None or one.heard_at is None else max(now - one.heard_at, 0.0)


def _hold_left_s(record: RolloutRecord, look: Look) -> float | None:
    if look.plan is None or record.phase is not RolloutPhase.HOLDING:
        return None
    return round(hold_left_s(record, look, look.plan), 1)


def _min_samples(record: RolloutRecord, look: Look) -> int:
    if look.plan is None:
        return 0
    shadowing = record.phase is RolloutPhase.SHADOWING
    return look.plan.shadow_min_pairs if shadowing else look.plan.min_samples


def _gate(record: RolloutRecord, look: Look, verdict: Verdict) -> dict[str, Any]:
    accepted = f"{verdict.gate}:{verdict.state}" in record.accepted
    does = "rollback" if look.plan is None else on_fail(look.plan, verdict.gate)
    return asdict(verdict) | {"on_fail": does, "accepted": accepted}


def _capacity(record: RolloutRecord, look: Look) -> dict[str, Any] | None:
    """For the next weight, or at the last for the present one; None while the board is silent."""
    if look.demand is None or look.plan is None:
        return None
    percent = next_percent(look.plan, record.percent)
    found = capacity_for(record.percent if percent is None else percent, look.demand)
    return {"ready": found.ready, "slots": found.slots, "needed_slots": found.needed_slots}
