"""Which models of an area of memory are loaded, which go, and which wait for their turn.

Everything but the order of those that wait, and what was decided last, is read off the board
each time: a control that starts anew sees what is loaded and goes on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from modelyard.scaling.area import (
    KEPT_LOAD_TIMES,
    Moment,
    Presence,
    Residency,
    kept_until,
)
from modelyard.scaling.turns import left, served

GIVE_UP_S: Final = 900.0  # a load that takes longer makes room, and waits for its next turn
# Serve puts another in the place of a replica that died; until then its memory is not given away.
REPLACED_WITHIN_S: Final = 60.0


def step(known: Residency, moment: Moment) -> Residency:
    """The decisions a moment later: at most one load or one round of evictions. Together the models
    that are loaded, load or leave never exceed the area by it."""
    looked = _queued(_given_up(_looked(known, moment), moment), moment)
    return served(looked, moment)


def _looked(known: Residency, moment: Moment) -> Residency:
    """What the board says of earlier decisions. A load that nobody remembers, of a control that
    died or of Serve's, counts as admitted."""
    now, models = moment.now, moment.models
    there = {v for v, one in models.items() if one.presence in (Presence.STARTING, Presence.READY)}
    absent = {v for v, one in models.items() if one.presence is Presence.ABSENT}
    leaving = {
        v: at
        for v, at in known.leaving.items()
        if v in models and v not in absent and not models[v].held
    }
    died = known.there & absent
    vanished = {v: until for v, until in known.vanished.items() if v in absent and now < until}
    vanished |= dict.fromkeys(died, now + REPLACED_WITHIN_S)
    admitted = {
        v: at for v, at in known.admitted.items() if v in models and _holds(known, v, moment)
    }
    for version in sorted(there - leaving.keys()):
        if models[version].presence is Presence.STARTING:
            admitted.setdefault(version, now)
    worth = known.worth.only(there)
    for version in sorted(there):
        one = models[version]
        worth = worth.asked(version, one.requests, one.load_s, one.memory_gb)
    return replace(
        known,
        admitted=admitted,
        leaving=leaving,
        vanished=vanished,
        there=frozenset(there - leaving.keys()),
        worth=worth,
    )


def _holds(known: Residency, version: str, moment: Moment) -> bool:
    """Whether an admission is not over."""
    one = moment.models[version]
    if one.presence is Presence.LEAVING:
        return False
    return one.presence is Presence.STARTING or moment.now < kept_until(known, one)


def _given_up(known: Residency, moment: Moment) -> Residency:
    """A load that never ends makes room; so does, for another that waits, one whose time is over
    and for which nobody wishes any more."""
    over = [
        version
        for version, since in known.admitted.items()
        if (one := moment.models[version]).presence is Presence.STARTING
        and not one.held
        and (
            moment.now > since + max(GIVE_UP_S, KEPT_LOAD_TIMES * one.load_s)
            or (known.waiting and not one.wished and moment.now > kept_until(known, one))
        )
    ]
    return left(known, over, moment.now)


def _queued(known: Residency, moment: Moment) -> Residency:
    """One place in the queue for each model, however many wish for it."""
    wanted = {
        version
        for version, one in moment.models.items()
        if one.wished
        and not one.barred
        and version not in known.admitted
        and (one.presence in (Presence.ABSENT, Presence.LEAVING) or version in known.leaving)
    }
    kept = tuple(entry for entry in known.waiting if entry[0] in wanted)
    added = sorted(wanted - {version for version, _ in kept})
    return replace(known, waiting=kept + tuple((version, moment.now) for version in added))
