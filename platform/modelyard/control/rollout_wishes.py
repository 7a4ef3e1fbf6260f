"""What control wishes of the fleet for its rollouts: replicas, then none, and shadow copies. Pure.

Made anew for each word and kept in no store: everything they follow from is.
"""

from __future__ import annotations

from typing import Final

from modelyard.config.table import Table
from modelyard.control.demand import Demands
from modelyard.control.published import Override, OverrideKind
from modelyard.control.rollout_look import freeze_of
from modelyard.control.rollout_states import AUTHOR, Planned, planned_in
from modelyard.control.state import State
from modelyard.rollout.capacity import capacity_for
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.readiness import next_percent
from modelyard.rollout.record import RolloutRecord

# Told again each second. Longer than a control takes to start anew.
LASTS_S: Final = 60.0


def wishes(state: State, table: Table | None, demands: Demands, now: float) -> tuple[Override, ...]:
    """A floor under a canary that is needed, a ceiling of 0 over one that no longer is, and a floor
    under the stable version while it may have to take everything back."""
    made = []
    for rollout, planned in planned_in(table).items():
        record = state.rollouts.get(rollout)
        if record is None or record.canary != planned.canary:
            continue
        wish = _floor(record, planned, demands)
        if record.phase is RolloutPhase.ROLLED_BACK:
            wish = _after_rollback(record, state, table, now)
        made += [wish, _way_back(record, planned, demands, now)]
    return tuple(one for one in made if one is not None)


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


def _floor(record: RolloutRecord, planned: Planned, demands: Demands) -> Override | None:
    """One replica, so that no user of the canary waits for a load; in Step what the next weight
    needs, which load alone would not bring."""
    if record.over or (record.percent == 0 and record.phase not in _NEEDS_ONE):
        return None
    replicas = 1
    percent = next_percent(planned.plan, record.percent)
    demand = demands.of_canary(planned)
    if record.phase is RolloutPhase.STEP and percent is not None and demand is not None:
        replicas = capacity_for(percent, demand).needed_replicas
    return _wish(record, "floor", replicas, "replicas for the next weight", LASTS_S)


def _way_back(
    record: RolloutRecord, planned: Planned, demands: Demands, now: float
) -> Override | None:
    """What the stable version needs for the traffic of both arms, at least one replica: it sees
    less and less of it, and scaling by load would leave a rollback nowhere to go."""
    if record.percent == 0 or record.stable != planned.stable:
        return None
    left_s = LASTS_S
    if record.over and (left_s := record.since + planned.plan.keep_for_s - now) <= 0:
        return None
    demand = demands.of_stable(planned)
    replicas = 1 if demand is None else capacity_for(100, demand).needed_replicas
    reason = "replicas to take everything back"
    return _wish(record, "floor", replicas, reason, left_s, version=planned.stable)


def _after_rollback(
    record: RolloutRecord, state: State, table: Table | None, now: float
) -> Override | None:
    if (left_s := _kept_s(record, state, now)) > 0:
        return _wish(record, "floor", 1, "a rolled back canary is kept for debugging", left_s)
    if _serves_elsewhere(record, state, table, now):
        return None
    return _wish(record, "ceiling", 0, "a rolled back canary has no traffic", LASTS_S)


def _kept_s(record: RolloutRecord, state: State, now: float) -> float:
    """For how long a rolled back canary keeps a replica; not above 0 once it may go."""
    left_s = (record.kept_until or 0.0) - now
    frozen = freeze_of(state, record.id, now) is not None
    return max(left_s, LASTS_S) if frozen else left_s


def _serves_elsewhere(record: RolloutRecord, state: State, table: Table | None, now: float) -> bool:
    """Whether any route may send to a rolled back canary: as anything but a canary, or as one of
    a rollout that is not rolled back itself, or that still keeps its replica."""
    for route in table.routes.values() if table is not None else ():
        others = route.model_copy(update={"canary": None}).versions()
        if record.canary in others:
            return True
        if route.canary != record.canary:
            continue
        other = state.rollouts.get(route.rollout.id) if route.rollout is not None else None
        if (
            other is None
            or other.phase is not RolloutPhase.ROLLED_BACK
            or _kept_s(other, state, now) > 0
        ):
            return True
    return False


def _wish(
    record: RolloutRecord,
    kind: OverrideKind,
    replicas: int,
    reason: str,
    left_s: float,
    version: str | None = None,
) -> Override:
    """Of the canary, where no other version is named."""
    target = version or record.canary
    return Override(kind, target, float(replicas), AUTHOR + record.id, reason, left_s)


_NEEDS_ONE: Final = (RolloutPhase.SHADOWING, RolloutPhase.STEP)
