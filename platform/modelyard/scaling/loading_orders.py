"""What an area's decisions ask of scaling and tell to callers."""

from __future__ import annotations

import math
from typing import Final

from modelyard.scaling.area import (
    KEPT_LOAD_TIMES,
    Moment,
    Presence,
    Residency,
    Seen,
    fits,
    free_gb,
    kept_until,
    leaving_gb,
)
from modelyard.scaling.eviction import victims

# Between two evictions of one area. Half of all loads of a large fleet take 22.7 s (Alibaba
# GenTD26): where callers of two models take turns, each is there for a while once it is loaded.
SWAP_EVERY_S: Final = 30.0
# How long the first in the queue waits for others to be idle. With such turns two models that are
# always in use load for a quarter of the time at most; and a turn is never shorter than a swap.
PATIENT_LOAD_TIMES: Final = 3
DRAIN_S: Final = 60.0  # then Serve's own grace begins
DONE_S: Final = 2.0  # by then every ingress knows of the drain


def is_kept(known: Residency, one: Seen, now: float) -> bool:
    """Whether a model must be loaded now whatever its load. What is loaded stays until its memory
    is needed: no other may have that memory meanwhile, and its next caller need not wait."""
    if one.version in known.leaving or (one.barred and not one.held):
        return False
    if one.presence is Presence.READY:
        return True
    if one.version in known.vanished:  # Serve puts another in its place
        return True
    if one.version not in known.admitted:
        return False
    return one.presence is Presence.STARTING or now < kept_until(known, one)


def is_shut(known: Residency, one: Seen, now: float) -> bool:
    """Whether it must not be loaded now. What makes room while it is in use is drained first, so
    that its requests end; a drained model is not shut before."""
    if one.version in known.leaving:
        is_done = one.presence is not Presence.READY or one.idle_s >= DONE_S
        return is_done or now >= known.leaving[one.version] + DRAIN_S
    is_away = one.presence is Presence.ABSENT
    return is_away and one.version not in known.admitted and one.version not in known.vanished


def patience_s(one: Seen) -> float:
    """At the head of the queue: after so long a model that is in use makes room too, and after
    twice as long even while requests wait for it."""
    return max(PATIENT_LOAD_TIMES * one.load_s, SWAP_EVERY_S)


def waits_s(known: Residency, moment: Moment) -> dict[str, float]:
    """Seconds until each model that waits or loads should answer, if those in use stay in use."""
    loading = {
        version: max(moment.models[version].load_s - (moment.now - since), 1.0)
        for version, since in known.admitted.items()
        if moment.models[version].presence is not Presence.READY
    }
    waits, busy_s = dict(loading), max(loading.values(), default=0.0)  # one loads at a time
    turn_s = max(known.swapped_at + SWAP_EVERY_S - moment.now, 0.0)
    free = free_gb(known, moment) + leaving_gb(known, moment)
    head_s = 0.0  # until it is the first in the queue
    for version, _ in known.waiting:
        one = moment.models[version]
        fits_now = fits(one.memory_gb, free)
        blocked_s = _blocked_s(known, moment, one, free)
        room_s = 0.0 if fits_now else max(turn_s, _kept_s(known, moment, one, free))
        begins_s = max(busy_s, head_s + blocked_s, room_s)
        if fits_now:
            free -= one.memory_gb
        else:
            turn_s = begins_s + SWAP_EVERY_S
        head_s, busy_s = begins_s, begins_s + one.load_s
        waits[version] = busy_s
    return waits


def _kept_s(known: Residency, moment: Moment, one: Seen, free: float) -> float:
    """Until enough of those loaded are past the time that each is kept after its admission."""
    ends = sorted(
        (known.admitted.get(version, -math.inf) + KEPT_LOAD_TIMES * other.load_s, other.memory_gb)
        for version, other in moment.models.items()
        if other.presence in (Presence.STARTING, Presence.READY) or version in known.admitted
        if version not in known.leaving and not other.held
    )
    for end, memory_gb in ends:
        free += memory_gb
        if fits(one.memory_gb, free):
            return max(end - moment.now, 0.0)
    return 0.0


def _blocked_s(known: Residency, moment: Moment, one: Seen, free: float) -> float:
    """Until its patience lets it begin; none where nothing is in its way."""
    is_room = fits(one.memory_gb, free)
    if not moment.is_peak and (is_room or victims(known, moment, one.memory_gb - free)):
        return 0.0
    times = 2 if moment.is_peak and not is_room else 1
    head = known.head
    waited_s = moment.now - head[1] if head is not None and head[0] == one.version else 0.0
    return max(times * patience_s(one) - waited_s, 0.0)
