"""What a human does to a rollout. Pure."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from modelyard.config.rollout import Rollout
from modelyard.contract.errors import InvalidRequest
from modelyard.rollout.capacity import Demand, capacity_for
from modelyard.rollout.look import Look
from modelyard.rollout.machine import roll_back, running_phase
from modelyard.rollout.phases import RolloutPhase
from modelyard.rollout.readiness import accepted_by
from modelyard.rollout.record import RolloutRecord, decide


class Word(Protocol):
    """Who says something, why, and when."""

    @property
    def author(self) -> str: ...
    @property
    def reason(self) -> str: ...
    @property
    def now(self) -> float: ...


RolloutVerb = Literal["start", "pause", "resume", "approve", "promote", "rollback"]

_ALREADY: Final = {
    "pause": RolloutPhase.PAUSED,
    "promote": RolloutPhase.PROMOTED,
    "rollback": RolloutPhase.ROLLED_BACK,
}
_ONLY_IN: Final = {
    "start": RolloutPhase.PENDING,
    "resume": RolloutPhase.PAUSED,
    "approve": RolloutPhase.AWAITING_APPROVAL,
}
_DONE: Final = {"start": "started", "resume": "resumed", "approve": "approved"}
_INSTEAD: Final = {
    "start": "it has begun already",
    "resume": "only what is paused resumes",
    "approve": "it waits for no approval",
}


def ordered(
    record: RolloutRecord, verb: RolloutVerb, look: Look, author: str, reason: str
) -> RolloutRecord:
    """The record after a human's word; the same one where it says what is so already.

    A freeze does not bind humans. Raises InvalidRequest where the phase does not allow the verb,
    and where the board says that who is to get all requests has no room for them. A silent board
    stops no human.
    """
    if record.phase is _ALREADY.get(verb):
        return record
    _refuse(record, verb, look)
    now, plan = look.now, look.plan
    if verb == "rollback":
        keep_for_s = plan.keep_for_s if plan is not None and _is_of(record, look) else 0.0
        return roll_back(record, reason, now, keep_for_s, author=author, seen=look)[0]
    if verb == "pause":
        paused = RolloutPhase.PAUSED
        return decide(record, paused, "paused", reason, now, author=author, seen=look)[0]
    if verb == "promote":
        return decide(
            record,
            RolloutPhase.PROMOTED,
            "promoted",
            reason,
            now,
            author=author,
            percent=100.0,
            seen=look,
        )[0]
    return _gone_on(record, verb, look, _planned(record, plan), author, reason)


def set_by_hand(
    record: RolloutRecord,
    percent: float,
    finish: bool,
    look: Look | None,
    by: Word,
) -> RolloutRecord:
    """A weight that a human chose pauses the machine; with `finish` it is the last word. look: None
    where nothing is known. Raises InvalidRequest for 100 % to a canary that has no room for it."""
    plan = look.plan if look is not None else None
    if percent == 100 and look is not None:
        _require_room(record.canary, look.demand)
    if finish and percent == 0:
        keep_for_s = plan.keep_for_s if plan is not None else 0.0
        return roll_back(record, by.reason, by.now, keep_for_s, author=by.author)[0]
    phase = RolloutPhase.PROMOTED if finish else RolloutPhase.PAUSED
    return decide(record, phase, "weight", by.reason, by.now, author=by.author, percent=percent)[0]


def _gone_on(
    record: RolloutRecord, verb: str, look: Look, plan: Rollout, author: str, reason: str
) -> RolloutRecord:
    accepted = accepted_by(record, look, plan) if verb == "approve" else None
    return decide(
        record,
        running_phase(record, plan),
        _DONE[verb],
        reason,
        look.now,
        author=author,
        seen=look,
        accepted=accepted,
    )[0]


def _refuse(record: RolloutRecord, verb: RolloutVerb, look: Look) -> None:
    if verb == "rollback" and record.phase is RolloutPhase.PROMOTED and _is_of(record, look):
        _require_ready(record.stable, look.stable_demand)
        return
    if record.over:
        raise InvalidRequest(
            f"the rollout {record.id} is over ({record.phase}): give a new one another id",
            param="rollout",
            reason="finished",
        )
    if verb == "pause" and record.phase is RolloutPhase.PENDING:
        raise InvalidRequest(
            f"the rollout {record.id} is {record.phase}, there is nothing to pause: freeze it "
            "(`modelyard override add freeze rollout:ID`) where it must not begin by itself",
            param="rollout",
            reason="phase",
        )
    wanted = _ONLY_IN.get(verb)
    if wanted is not None and record.phase is not wanted:
        raise InvalidRequest(
            f"the rollout {record.id} is {record.phase}: {_INSTEAD[verb]}",
            param="rollout",
            reason="phase",
        )
    if verb == "promote":
        _require_room(record.canary, look.demand)


def _is_of(record: RolloutRecord, look: Look) -> bool:
    """Whether the table has it, and between the versions that it began with."""
    return look.plan is not None and (look.alias, look.stable, look.canary) == (
        record.alias,
        record.stable,
        record.canary,
    )


def _require_ready(version: str, demand: Demand | None) -> None:
    if demand is not None and demand.ready < 1:
        raise InvalidRequest(
            f"{version} has no ready replica, so requests would fail: bring one up first "
            f"(`{_floor_command(version, 1)}`)",
            param="rollout",
            reason="no_capacity",
        )


def _require_room(version: str, demand: Demand | None) -> None:
    """One ready replica is not enough for everybody: the others' requests would be refused."""
    _require_ready(version, demand)
    if demand is None or (found := capacity_for(100, demand)).enough:
        return
    raise InvalidRequest(
        f"{version} has {found.slots} of the {found.needed_slots} slots that all requests need: "
        f"bring up {found.needed_replicas} replicas first "
        f"(`{_floor_command(version, found.needed_replicas)}`), or go up in steps",
        param="rollout",
        reason="no_capacity",
    )


def _floor_command(version: str, replicas: int) -> str:
    return (
        f'modelyard override add floor {version} --value {replicas} --for 3600 --reason "a rollout"'
    )


def _planned(record: RolloutRecord, plan: Rollout | None) -> Rollout:
    if plan is None:
        raise InvalidRequest(
            f"the table no longer has the rollout {record.id}: put it back, or roll it back",
            param="rollout",
            reason="no_plan",
        )
    return plan
