"""The first scaling rule: enough replicas for the work that waits and the work that runs.

Little's law gives queued plus ongoing = arrival rate x time in system. Counting ongoing alone would
hide the queue once every slot is busy (the seeds' example: 8 replicas in place of 11).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from modelyard.lifecycle.silence import SILENT_S
from modelyard.scaling.version_signal import VersionSignal

STALE_AFTER_S: Final = 3.0  # the reader asks twice a second
# By then every ingress has posted and control, which looks at no younger board than SILENT_S, has
# published who is loaded: without its word nobody knows that a model is kept in a swap area.
YOUNG_UNTIL_S: Final = SILENT_S + 5.0


@dataclass(frozen=True, slots=True)
class Signal:
    """What one decision is made from.

    ongoing: Ray's own total, requests queued at handles plus those at replicas, averaged over
    `look_back_period_s`. target: Serve's present target, replicas that are starting included.
    board_age_s: seconds since the last reading, None before the first. board_up_s: how long the
    board had run by then.
    """

    ongoing: float
    target_ongoing_requests: float
    target: int
    version: VersionSignal
    board_age_s: float | None
    board_up_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Replicas, before Serve's own delays, and why in a few words."""

    replicas: int
    why: str


def desired(signal: Signal) -> Decision:
    """The replicas that a version should have. Raises ValueError for a target of nothing.

    A freeze keeps the target whatever else is asked. A floor beats a ceiling: too few replicas hurt
    callers, too many only cost. Without a fresh reading the queue is unknown: it is not counted
    (what waited then is by now in Ray's own total), and no replica is taken away.
    """
    version = signal.version
    if version.freeze is not None:
        return Decision(signal.target, f"frozen by {version.freeze.author}")
    decision = _for_load(signal)
    if version.wish is not None and version.wish.replicas > decision.replicas:
        decision = Decision(version.wish.replicas, "wished for while not loaded")
    if version.ceiling is not None and version.ceiling.replicas < decision.replicas:
        ceiling = version.ceiling
        decision = Decision(ceiling.replicas, f"ceiling {ceiling.replicas} by {ceiling.author}")
    if version.floor is not None and version.floor.replicas > decision.replicas:
        floor = version.floor
        decision = Decision(floor.replicas, f"floor {floor.replicas} by {floor.author}")
    if decision.replicas < signal.target and (blind := _blind(signal)):
        return Decision(signal.target, f"held: {blind}")
    return decision


def bounded(decision: Decision, min_replicas: int, max_replicas: int) -> Decision:
    """Within the config's bounds, as Serve will do it: so that `status` shows what comes of it."""
    if decision.replicas > max_replicas:
        return Decision(max_replicas, f"{decision.why}, at most max_replicas {max_replicas}")
    if decision.replicas < min_replicas:
        return Decision(min_replicas, f"{decision.why}, at least min_replicas {min_replicas}")
    return decision


def _for_load(signal: Signal) -> Decision:
    """So many that each holds at most `target_ongoing_requests` of all requests in the system."""
    each = signal.target_ongoing_requests
    if each <= 0:
        raise ValueError("target_ongoing_requests must be positive")
    waiting = 0.0 if _silent(signal) else signal.version.waiting
    ongoing = max(signal.ongoing, 0.0)
    replicas = math.ceil((waiting + ongoing) / each)
    if replicas == 0:
        return Decision(0, "idle")
    why = f"{round(waiting, 1):g} waiting + {round(ongoing, 1):g} ongoing / {each:g}"
    return Decision(replicas, why)


def _blind(signal: Signal) -> str:
    """Why the board's word may not be whole; empty when it is."""
    if silent := _silent(signal):
        return silent
    if signal.board_up_s < YOUNG_UNTIL_S:
        return f"board began {signal.board_up_s:.0f} s ago"
    return ""


def _silent(signal: Signal) -> str:
    if signal.board_age_s is None:
        return "no reading of the board yet"
    if signal.board_age_s > STALE_AFTER_S:
        return f"board silent for {signal.board_age_s:.0f} s"
    return ""
