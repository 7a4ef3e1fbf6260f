"""The state machine of a rollout: where it goes by itself. Pure; commands.py has what humans do."""

from __future__ import annotations

from typing import Final, TypeAlias

from modelyard.config.rollout import Rollout
from modelyard.rollout.look import Look
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.readiness import (
    needs_human,
    next_percent,
    rolls_back,
    step_waits_for,
    waits_for,
)
from modelyard.rollout.record import CONTROL, Decision, RolloutRecord, decide
from modelyard.rollout.verdict import Verdict

Moved: TypeAlias = tuple[RolloutRecord, Decision | None]
_STOPPED: Final = (RolloutPhase.PENDING, RolloutPhase.AWAITING_APPROVAL, RolloutPhase.PAUSED)


def advance(record: RolloutRecord, look: Look) -> Moved:
    """The record after one look; with None, and the same record, where nothing is to be done.

    The same look again changes nothing more, so that a control that died between a commit and what
    follows it may look again. A weight that rises begins its own evidence: the caller must not
    offer the samples of the step before.
    """
    if record.over or look.frozen or look.held:
        return record, None
    plan = look.plan
    if plan is None or (look.alias, look.stable, look.canary) != (
        record.alias,
        record.stable,
        record.canary,
    ):
        return _aborted(record, look)
    if (verdict := rolls_back(record, look, plan)) is not None:
        return _rolled_back_by(record, verdict, look, plan)
    starts = record.phase is RolloutPhase.PENDING and plan.start == "automatic"
    if record.phase in _STOPPED and not starts:
        return record, None
    if (verdict := needs_human(record, look, plan)) is not None:
        why = f"{verdict.words} ({verdict.gate})"
        phase = RolloutPhase.AWAITING_APPROVAL
        return decide(record, phase, "asked", why, look.now, seen=look)
    if starts:
        return _begun(record, look, plan)
    if record.phase is not RolloutPhase.STEP and waits_for(record, look, plan):
        return record, None
    if (percent := next_percent(plan, record.percent)) is not None:
        return _raised(record, look, plan, percent)
    why = f"100 % held for {plan.hold_s:g} s with {look.samples} requests"
    phase = RolloutPhase.PROMOTED
    return decide(record, phase, "promoted", why, look.now, seen=look)


def running_phase(record: RolloutRecord, plan: Rollout) -> RolloutPhase:
    """Where a rollout goes on that a human lets go on."""
    if record.percent > 0:
        return RolloutPhase.HOLDING
    return RolloutPhase.SHADOWING if plan.shadow_percent else RolloutPhase.STEP


def roll_back(
    record: RolloutRecord,
    why: str,
    now: float,
    keep_for_s: float,
    *,
    author: str = CONTROL,
    seen: Look | None = None,
) -> tuple[RolloutRecord, Decision]:
    """Weight 0, for good."""
    return decide(
        record,
        RolloutPhase.ROLLED_BACK,
        "rolled_back",
        why,
        now,
        author=author,
        percent=0.0,
        seen=seen,
        kept_until=now + keep_for_s,
    )


def _rolled_back_by(record: RolloutRecord, verdict: Verdict, look: Look, plan: Rollout) -> Moved:
    where = f" ({verdict.gate}{', ' + verdict.where if verdict.where else ''})"
    why = verdict.words + where
    return roll_back(record, why, look.now, plan.keep_for_s, seen=look)


def _begun(record: RolloutRecord, look: Look, plan: Rollout) -> Moved:
    """By itself. Shadow copies wait for nothing, the first weight for replicas."""
    if (phase := running_phase(record, plan)) is RolloutPhase.SHADOWING:
        return decide(record, phase, "started", "the plan starts by itself", look.now)
    return _raised(record, look, plan, plan.steps_percent[0])


def _aborted(record: RolloutRecord, look: Look) -> Moved:
    why = "the table no longer has this rollout"
    if look.plan is not None:
        why = f"the table now gives it {look.alias}: {look.stable} to {look.canary}"
    return decide(record, RolloutPhase.ABORTED, "aborted", why, look.now, percent=0.0, seen=look)


def _raised(record: RolloutRecord, look: Look, plan: Rollout, percent: float) -> Moved:
    """To the next weight, or to waiting for its replicas."""
    missing = step_waits_for(record, look, plan, percent)
    if not missing:
        says = "approved" if record.accepted else "everything holds"
        why = f"{says} at {record.percent:g} %: on to {percent:g} %"
        if record.percent == 0:
            why = f"the first step: {percent:g} %"
        phase = RolloutPhase.HOLDING
        return decide(record, phase, "step", why, look.now, percent=percent, seen=look)
    if record.phase is RolloutPhase.STEP:
        return record, None
    why = f"{percent:g} % waits for {missing}"
    return decide(record, RolloutPhase.STEP, "waits", why, look.now, seen=look)
