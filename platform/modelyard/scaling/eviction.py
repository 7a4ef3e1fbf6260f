"""Who goes when a model needs the memory of others."""

from __future__ import annotations

from typing import Final

from modelyard.scaling.area import Moment, Presence, Residency, Seen, fits, kept_until, sum_gb

# A model that answered so lately is in use, though nothing of it is under way at this moment.
QUIET_S: Final = 5.0


def victims(
    known: Residency, moment: Moment, missing_gb: float, *, in_use: bool = False
) -> tuple[str, ...]:
    """The least worth first, and none that is not needed; empty where they are not enough. in_use:
    a model may go although it answers: it is drained, and what it has begun ends."""
    chosen: list[Seen] = []
    may_go = [one for one in moment.models.values() if _may_go(known, one, moment.now, in_use)]
    for one in sorted(may_go, key=lambda one: (known.worth.of(one.version), one.version)):
        if fits(missing_gb, sum_gb(chosen)):
            break
        chosen.append(one)
    if not fits(missing_gb, sum_gb(chosen)):
        return ()
    for one in reversed(tuple(chosen)):  # the dearest first
        if fits(missing_gb, sum_gb(chosen) - one.memory_gb):
            chosen.remove(one)
    return tuple(one.version for one in chosen)


def _may_go(known: Residency, one: Seen, now: float, in_use: bool) -> bool:
    return (
        one.presence is Presence.READY
        and one.version not in known.leaving
        and not one.held
        and (in_use or one.idle_s >= QUIET_S)
        and now >= kept_until(known, one)
    )
