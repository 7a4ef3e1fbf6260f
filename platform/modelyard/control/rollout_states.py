"""Rollouts in control's state: the record and its weight change in one commit. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from modelyard.config.rollout import Rollout
from modelyard.config.table import Table
from modelyard.control.weight import Weight
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.record import CONTROL, RolloutRecord, decide, rebased

if TYPE_CHECKING:
    from modelyard.control.state import State

LATEST: Final = 20  # of the rollouts that are over: these keep their logs, and are published
AUTHOR: Final = "rollout:"  # before an id: of what control wishes for a rollout; no key has a colon


@dataclass(frozen=True, slots=True)
class Planned:
    """A rollout as the table has it."""

    alias: str
    stable: str
    canary: str
    plan: Rollout


def planned_in(table: Table | None) -> dict[str, Planned]:
    """By rollout id."""
    routes = table.routes.items() if table is not None else ()
    return {
        route.rollout.id: Planned(alias, route.stable, route.canary, route.rollout)
        for alias, route in routes
        if route.rollout is not None and route.canary is not None
    }


def record_of(state: State, rollout: str, planned: Planned | None) -> RolloutRecord | None:
    """What is kept of it, or what its weight alone says, or one that has not begun.

    None where neither the state nor the table knows the id.
    """
    if (kept := state.rollouts.get(rollout)) is not None:
        return kept
    weight = state.weights.get(rollout)
    if planned is None and weight is None:
        return None
    record = RolloutRecord(id=rollout, alias="", stable="", canary="")
    if planned is not None:
        names = {"alias": planned.alias, "stable": planned.stable, "canary": planned.canary}
        record = record.model_copy(update=names)
    return record if weight is None else _by_weight(record, weight)


def records(state: State, table: Table | None) -> Iterator[tuple[RolloutRecord, Planned | None]]:
    """Every rollout that the state or the table knows, and what the table has of it."""
    planned = planned_in(table)
    for rollout in sorted(planned.keys() | state.rollouts.keys() | state.weights.keys()):
        found = planned.get(rollout)
        if (record := record_of(state, rollout, found)) is not None:
            yield record, found


def keep(state: State, record: RolloutRecord) -> State:
    """The state with this record and its weight; the same one where it has them already, or where
    that rollout is over: an end is never taken back, but for a promotion by a rollback."""
    held = state.rollouts.get(record.id)
    if held == record:
        return state
    turned_back = (RolloutPhase.PROMOTED, RolloutPhase.ROLLED_BACK)
    if held is not None and held.over and (held.phase, record.phase) != turned_back:
        return state
    return state.changed(**_with(state, record))


def ended_in(state: State, ended: RolloutRecord, *, told: bool = False) -> State:
    """The state with a rollback that was decided on an older one; the same where it is over.

    told: the rollback is in force already, so that nothing that was decided meanwhile beats it. One
    that is not yet loses to a human's promotion, unless it is a human's too.
    """
    held = state.rollouts.get(ended.id)
    if held is None:
        return state.changed(**_with(state, ended))
    if held.phase is RolloutPhase.ROLLED_BACK:
        return state
    outranked = held.author == CONTROL or ended.author != CONTROL
    beaten = told or (held.phase is RolloutPhase.PROMOTED and outranked)
    if held.over and not beaten:
        return state
    return state.changed(**_with(state, rebased(ended, held)))


def beside(state: State, record: RolloutRecord) -> State:
    """As `keep`, in the revision of a change that is being made."""
    return state.model_copy(update=_with(state, record))


def published_ids(state: State, table: Table | None) -> frozenset[str]:
    """Rollouts whose weights every ingress is told: those that a table names or that are not over,
    and the latest that are, because an ingress may still have the table before."""
    if table is None:
        return frozenset(state.weights)
    over = sorted(
        (one for one in state.weights.items() if one[1].finished), key=lambda one: -one[1].at
    )
    older = {rollout for rollout, _ in over[LATEST:]}
    return frozenset(state.weights) - (older - planned_in(table).keys())


def rolled_back(
    state: State, told: Mapping[str, Weight], kept_s: dict[str, float], now: float
) -> State:
    """The state with the rollbacks that ingresses were told and that it does not have: control died
    before its store had taken them. told: those weights of the board's that are ends at 0."""
    missing = {
        rollout: weight
        for rollout, weight in told.items()
        if (held := state.weights.get(rollout)) is None or not held.finished or held.percent > 0
    }
    if not missing:
        return state
    made = reconciled(state, missing, kept_s, now)
    return state.model_copy(update={"weights": state.weights | missing, "rollouts": made})


def reconciled(
    state: State, weights: dict[str, Weight], kept_s: dict[str, float], now: float
) -> dict[str, RolloutRecord]:
    """The records where the board's weights are later than the store's.

    kept_s: seconds for which the board still keeps a rolled back canary's replicas.
    """
    made = dict(state.rollouts)
    for rollout, weight in weights.items():
        record = made.get(rollout)
        turned_back = weight.finished and weight.percent == 0
        if record is None or (record.over and not (turned_back and record.percent > 0)):
            continue
        if record.percent == weight.percent and not weight.finished:
            continue
        found = _by_weight(record, weight)
        why = "the board held a later word than the store"
        left_s = kept_s.get(rollout) if turned_back else None
        made[rollout], _ = decide(
            record,
            found.phase,
            "restored",
            why,
            now,
            author="board",
            percent=weight.percent,
            kept_until=None if left_s is None else now + left_s,
        )
    return made


def _with(state: State, record: RolloutRecord) -> dict[str, object]:
    weight = Weight(
        percent=record.percent,
        finished=record.over,
        author=record.author,
        reason=record.reason,
        at=record.since,
    )
    weights = state.weights | ({record.id: weight} if record.begun else {})
    return {"weights": weights, "rollouts": _trimmed(state.rollouts | {record.id: record})}


def _by_weight(record: RolloutRecord, weight: Weight) -> RolloutRecord:
    """Control knew a weight and no phase: an older release, or the board's word alone."""
    phase = RolloutPhase.PAUSED
    if weight.finished:
        phase = RolloutPhase.PROMOTED if weight.percent > 0 else RolloutPhase.ROLLED_BACK
    changes = {
        "phase": phase,
        "percent": weight.percent,
        "since": weight.at,
        "weight_since": weight.at,
        "author": weight.author,
        "reason": weight.reason,
    }
    return record.model_copy(update=changes)


def _trimmed(kept: dict[str, RolloutRecord]) -> dict[str, RolloutRecord]:
    """Ids are kept for ever, because one that is over never restarts; their logs are not."""
    over = sorted((one for one in kept.values() if one.over), key=lambda one: -one.since)
    old = (one for one in over[LATEST:] if one.history)
    return kept | {one.id: one.model_copy(update={"history": ()}) for one in old}
