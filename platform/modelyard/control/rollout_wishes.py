"""What control wishes of the fleet for its rollouts: replicas, then none, and shadow copies. Pure.

Made anew for each word and kept in no store: everything they follow from is.
"""

from __future__ import annotations

from typing import Final

from modelyard.config.table import Table
from modelyard.control.published import Override, OverrideKind
from modelyard.control.reading import Reading
from modelyard.control.rollout_look import demand_of, freeze_of
from modelyard.control.rollout_states import AUTHOR, Planned, planned_in
from modelyard.control.state import State
from modelyard.rollout.capacity import capacity_for
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.readiness import next_percent
from modelyard.rollout.record import RolloutRecord

# Told again each second. Longer than a control takes to start anew.
LASTS_S: Final = 60.0


def wishes(
    state: State, table: Table | None, reading: Reading | None, now: float
) -> tuple[Override, ...]:
    """A floor under a canary that is needed, a ceiling of 0 over one that no longer is."""
    made = []
    for rollout, planned in planned_in(table).items():
        record = state.rollouts.get(rollout)
        if record is None or record.canary != planned.canary:
            continue
        wish = _floor(record, planned, reading)
        if record.phase is RolloutPhase.ROLLED_BACK:
            wish = _after_rollback(record, state, table, now)
        if wish is not None:
            made.append(wish)
    return tuple(made)


def shadows(state: State, table: Table | None) -> tuple[tuple[str, float], ...]:
    """(rollout, percent) of those that copy requests now. A freeze stops no copies: it stops
    changes."""
    return tuple(
        (rollout, planned.plan.shadow_percent)
        for rollout, planned in sorted(planned_in(table).items())
        if (record := state.rollouts.get(rollout)) is not None
        and record.phase is RolloutPhase.SHADOWING
        and planned.plan.shadow_percent > 0
    )


def _floor(record: RolloutRecord, planned: Planned, reading: Reading | None) -> Override | None:
    """One replica, so that no user of the canary waits for a load; in Step what the next weight
    needs, which load alone would not bring."""
    if record.over or (record.percent == 0 and record.phase not in _NEEDS_ONE):
        return None
    replicas = 1
    percent = next_percent(planned.plan, record.percent)
    demand = demand_of(planned, reading)
    if record.phase is RolloutPhase.STEP and percent is not None and demand is not None:
        replicas = capacity_for(percent, demand).needed_replicas
    return _wish(record, "floor", replicas, "replicas for the next weight", LASTS_S)


def _after_rollback(
    record: RolloutRecord, state: State, table: Table | None, now: float
) -> Override | None:
    left_s = (record.kept_until or 0.0) - now
    if freeze_of(state, record.id, now) is not None:
        left_s = max(left_s, LASTS_S)
    if left_s > 0:
        return _wish(record, "floor", 1, "a rolled back canary is kept for debugging", left_s)
    if _serves_elsewhere(record, table):
        return None
    return _wish(record, "ceiling", 0, "a rolled back canary has no traffic", LASTS_S)


def _serves_elsewhere(record: RolloutRecord, table: Table | None) -> bool:
    """Whether any route but this rollout's may send to the canary, or this one as its stable."""
    routes = table.routes.values() if table is not None else ()
    return any(
        record.canary in route.versions()
        and (route.rollout is None or route.rollout.id != record.id)
        for route in routes
    )


def _wish(
    record: RolloutRecord, kind: OverrideKind, replicas: int, reason: str, left_s: float
) -> Override:
    return Override(kind, record.canary, float(replicas), AUTHOR + record.id, reason, left_s)


_NEEDS_ONE: Final = (RolloutPhase.SHADOWING, RolloutPhase.STEP)
