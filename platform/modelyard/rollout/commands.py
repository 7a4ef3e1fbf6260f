"""What a human does to a rollout. Pure."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from modelyard.config.rollout import Rollout
from modelyard.contract.errors import InvalidRequest
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
    and for `promote` while the board says that the canary has no ready replica.
    """
    if record.phase is _ALREADY.get(verb):
        return record
    _refuse(record, verb, look)
    now, plan = look.now, look.plan
    if verb == "rollback":
        keep_for_s = plan.keep_for_s if plan is not None else 0.0
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
    plan: Rollout | None,
    by: Word,
) -> RolloutRecord:
    """A weight that a human chose pauses the machine; with `finish` it is the last word."""
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
    if record.over:
        raise InvalidRequest(
            f"the rollout {record.id} is over ({record.phase}): give a new one another id",
            param="rollout",
            reason="finished",
        )
    wanted = _ONLY_IN.get(verb)
    if wanted is not None and record.phase is not wanted:
        raise InvalidRequest(
            f"the rollout {record.id} is {record.phase}: {_INSTEAD[verb]}",
            param="rollout",
            reason="phase",
        )
    if verb == "promote" and look.demand is not None and look.demand.ready < 1:
        raise InvalidRequest(
            f"{record.canary} has no ready replica, and everybody would wait for one: bring one up "
            "with a floor override first",
            param="rollout",
            reason="no_capacity",
        )


def _planned(record: RolloutRecord, plan: Rollout | None) -> Rollout:
    if plan is None:
        raise InvalidRequest(
            f"the table no longer has the rollout {record.id}: put it back, or roll it back",
            param="rollout",
            reason="no_plan",
        )
    return plan
