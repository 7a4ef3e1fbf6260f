"""How the ingresses divide the slots of a version among themselves, without asking each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor

from modelyard.admission.bands import BANDS, rank


@dataclass(frozen=True, slots=True)
class Demand:
    """What one ingress says of one version: requests that run and that wait there, by band."""

    ingress: str
    running: Mapping[str, int] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)

    def by_rank(self) -> tuple[int, ...]:
        counts = [0] * len(BANDS)
        for requests in (self.running, self.waiting):
            for band, count in requests.items():
                counts[rank(band)] += count
        return tuple(counts)


@dataclass(frozen=True, slots=True)
class Share:
    """slots: that an ingress may use now. steady: those that its estimates go by, what it has or
    would have if all asked for much: by the slots of the moment one that had asked for little would
    refuse its first burst for a wait that nobody ever has."""

    slots: int
    steady: int


def shares(capacity: int, demands: Sequence[Demand]) -> dict[str, int]:
    """Slots of each ingress: max-min fair by demand, the bands in strict order, the rest equally.

    Whole slots by largest remainder, names sorted first, so that every ingress comes to the same
    answer from the same reading. With demand at least 1, taken from the largest, even where that
    exceeds the capacity: the replicas refuse what is too much, and an ingress without a slot would
    only look on. Nobody gets one where there is none at all.
    """
    if capacity <= 0:
        return {demand.ingress: 0 for demand in demands}
    wanted = {demand.ingress: demand.by_rank() for demand in demands}
    names = sorted(wanted)
    exact = dict.fromkeys(names, 0.0)
    left = float(capacity)
    for band in range(len(BANDS)):
        given = _max_min(left, {name: wanted[name][band] for name in names})
        for name in names:
            exact[name] += given[name]
        left -= sum(given.values())
    for name in names:
        exact[name] += left / len(names)
    return _at_least_one(_whole(capacity, exact), [name for name in names if any(wanted[name])])


def share_of(
    capacity: int, own: Demand, others: Sequence[Demand], before: int = 0, *, heard: bool = True
) -> Share:
    """The part of one ingress, by its own present word and the last word of the others.

    heard: whether every other has spoken since this one ran short of slots. Until then it grows
    from `before`, its share so far, to its fair part at most: a burst that comes to all ingresses
    at once finds each of them told that the others are idle, and each would take every slot. What
    is too much then waits inside Ray, where nobody is first.
    """
    slots = shares(capacity, [own, *others])[own.ingress]
    fair = capacity // (len(others) + 1)
    if not heard and slots > before:
        slots = max(before, min(slots, max(fair, 1)))
    return Share(slots, max(slots, fair))


def alone(capacity: int, known: int) -> int:
    """The share while the board is silent: `known` ingresses were last heard of, this one too."""
    return max(1, capacity // max(1, known)) if capacity > 0 else 0


def _max_min(slots: float, wanted: Mapping[str, int]) -> dict[str, float]:
    """Equal parts, but nobody gets more than it wants (progressive filling)."""
    given = {}
    remaining = sorted(wanted, key=lambda name: (wanted[name], name))
    for i, name in enumerate(remaining):
        given[name] = min(float(wanted[name]), slots / (len(remaining) - i))
        slots -= given[name]
    return given


def _whole(capacity: int, exact: Mapping[str, float]) -> dict[str, int]:
    whole = {name: floor(part) for name, part in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (whole[name] - exact[name], name))
    for name in by_remainder[: capacity - sum(whole.values())]:
        whole[name] += 1
    return whole


def _at_least_one(whole: dict[str, int], asking: Sequence[str]) -> dict[str, int]:
    for name in asking:
        if whole[name]:
            continue
        richest = max(sorted(whole), key=lambda other: (whole[other], other not in asking))
        if whole[richest] > 1 or (whole[richest] == 1 and richest not in asking):
            whole[richest] -= 1
        whole[name] = 1
    return whole
