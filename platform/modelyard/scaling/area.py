"""An area of memory that models share: what is seen of it, and what was decided."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from modelyard.scaling.gdsf import Worth

KEPT_LOAD_TIMES: Final = 2  # so long after its admission a model is not evicted
# Scheduling, a process and its imports: a replica says nothing before, whatever its load takes.
BOOT_S: Final = 120.0
ROUNDING_GB: Final = 1e-6  # sums of floats


class Presence(StrEnum):
    """Of a model's replica. Leaving: it drains, and its memory is not free yet."""

    ABSENT = "absent"
    STARTING = "starting"
    READY = "ready"
    LEAVING = "leaving"


@dataclass(frozen=True, slots=True)
class Seen:
    """A model of the area at one moment.

    requests: answered since the moment before. idle_s: since something of it was under way, or
    waited, or was answered. wished: by a caller who was refused. held: an operator or a rollout
    wants it loaded, or frozen as it is. barred: one wants it not loaded.
    """

    version: str
    memory_gb: float
    load_s: float
    presence: Presence = Presence.ABSENT
    idle_s: float = 0.0
    requests: int = 0
    wished: bool = False
    held: bool = False
    barred: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """An area as it is. is_peak: requests wait for some model of the same device. now: seconds."""

    memory_gb: float
    models: Mapping[str, Seen]
    now: float
    is_peak: bool = False


@dataclass(frozen=True, slots=True)
class Residency:
    """One area's decisions. waiting: (version, since), first come first served. admitted and
    leaving: versions and since when. vanished: until when the memory of a replica that died is
    kept. head: the first in the queue, and since when it is. swapped_at: the last eviction. loads,
    evictions: counted since the process began."""

    waiting: tuple[tuple[str, float], ...] = ()
    admitted: Mapping[str, float] = field(default_factory=dict)
    leaving: Mapping[str, float] = field(default_factory=dict)
    vanished: Mapping[str, float] = field(default_factory=dict)
    there: frozenset[str] = frozenset()
    head: tuple[str, float] | None = None
    swapped_at: float = -math.inf
    worth: Worth = field(default_factory=Worth)
    loads: int = 0
    evictions: int = 0


def kept_until(known: Residency, one: Seen) -> float:
    """The end of the time after its admission; the distant past for one that is not admitted."""
    kept_s = KEPT_LOAD_TIMES * one.load_s
    if one.presence is not Presence.READY:
        kept_s = max(kept_s, BOOT_S)
    return known.admitted.get(one.version, -math.inf) + kept_s


def fits(needed_gb: float, room_gb: float) -> bool:
    return needed_gb <= room_gb + ROUNDING_GB


def free_gb(known: Residency, moment: Moment, but: str = "") -> float:
    """Memory that nobody has and nobody was promised. but: one that is not counted."""
    taken = (one for one in moment.models.values() if one.version != but and _takes(known, one))
    return moment.memory_gb - sum_gb(taken)


def leaving_gb(known: Residency, moment: Moment) -> float:
    """Memory that will be free."""
    return sum_gb(
        one
        for one in moment.models.values()
        if one.version in known.leaving or one.presence is Presence.LEAVING
    )


def sum_gb(models: Iterable[Seen]) -> float:
    return sum(one.memory_gb for one in models)


def _takes(known: Residency, one: Seen) -> bool:
    return (
        one.presence is not Presence.ABSENT
        or one.version in known.admitted
        or one.version in known.vanished
    )
