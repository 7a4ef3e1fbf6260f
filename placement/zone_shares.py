"""An item with a cap per zone, dealt out to the zones.

In proportion to the room that each has for it; after that no method has to think of zones.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from placement.problem import Item, Vector


class Part(NamedTuple):
    """Replicas of an item with one set of possible places; needs: one for each model of a place."""

    item: str
    needs: tuple[Vector | None, ...]
    replicas: int


def parts_of(
    item: Item,
    needs: tuple[Vector | None, ...],
    zones: Sequence[str],
    room: Sequence[int],
    *,
    by_zone: bool,
) -> tuple[Part, ...]:
    """zones: of the models; room: replicas that the places of each take while they are empty.
    Replicas over the caps of all zones are left out."""
    open_to = sorted({zone for zone, need in zip(zones, needs, strict=True) if need is not None})
    free = item.per_zone is None or item.replicas <= item.per_zone
    if item.per_zone is None or free or not by_zone or not open_to:
        return (Part(item.name, needs, item.replicas),)
    # Who gets one more must differ from item to item, and not from run to run.
    first = zlib.crc32(item.name.encode()) % len(open_to)
    turns = [*open_to[first:], *open_to[:first]]
    fit = {
        zone: sum(n for own, n in zip(zones, room, strict=True) if own == zone) for zone in turns
    }
    given = dict.fromkeys(turns, 0)
    for _ in range(min(item.replicas, item.per_zone * len(turns))):
        under = [zone for zone in turns if given[zone] < item.per_zone]
        next_ = min(under, key=lambda zone: (given[zone] + 1) / max(1, fit[zone]))
        given[next_] += 1
    parts = []
    for zone in open_to:
        here = tuple(need if own == zone else None for own, need in zip(zones, needs, strict=True))
        if given[zone]:
            parts.append(Part(item.name, here, given[zone]))
    return tuple(parts)
