"""Waiting until the cells that a move leaves are idle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from placement.moving import Pace, Platform, Unseen

POLL_S: Final = 1.0
# Idle at one look may be the moment in which a request is on its way to the replica.
SEEN_IDLE: Final = 3
# Control publishes, the board passes on, and each ingress reads it five times a second.
OPENS_WITHIN_S: Final = 3.0


class Drained(StrEnum):
    """How the wait ended. IDLE: the apps may go. LOST: what came in their place did not stay.
    OPEN: they get new requests, or nobody knows whether they do."""

    IDLE = "idle"
    LOST = "lost"
    OPEN = "open"


def until_idle(
    platform: Platform,
    apps: Sequence[str],
    pace: Pace,
    lost: Callable[[], bool],
    tell: Callable[[str], None],
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> Drained:
    """At pace.drain_within_s the apps may go too, but only while their drains are in force: `tell`
    hears what is left to Serve's shutdown then."""
    closed_at = now()
    until = closed_at + pace.drain_within_s
    idle = 0
    while apps:
        counts, blind = dict[str, int](), False
        try:
            if lost():
                return Drained.LOST
            looked = {app: platform.ongoing(app) for app in apps}
            counts = {app: count for app, count in looked.items() if count is not None}
        except Unseen:
            blind = True
        closed = len(counts) == len(apps)
        if not blind:
            idle = idle + 1 if closed and not any(counts.values()) else 0
        if idle >= SEEN_IDLE:
            break
        if closed:
            closed_at = now()
            if closed_at >= until:
                _tell_cut_off(counts, tell)
                break
        elif now() >= (until if blind else closed_at + pace.drain_taken_within_s):
            return Drained.OPEN
        sleep(POLL_S)
    return Drained.IDLE


def _tell_cut_off(counts: dict[str, int], tell: Callable[[str], None]) -> None:
    for app, count in counts.items():
        if count:
            tell(f"{app}: {count} requests have not ended, and have Serve's graceful shutdown left")
