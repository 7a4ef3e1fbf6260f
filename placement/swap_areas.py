"""Areas of memory that swappable models take in turn: one item of the packing each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from modelyard.config.fleet import FleetSpec
from modelyard.config.swap import SwapArea
from placement.inventory import MB_PER_GB
from placement.problem import Item, Place, Vector

PREFIX: Final = "swap:"
_LONGEST: Final = 63


@dataclass(frozen=True, slots=True)
class Area:
    """name: of the area, without the item's prefix. members: `name@version` to needs by pool."""

    name: str
    members: Mapping[str, Mapping[str, Vector]]
    priority: int

    @property
    def item(self) -> Item:
        """As large as the largest member, with compute for as many as its memory holds at once."""
        pools = sorted(set.intersection(*(set(needs) for needs in self.members.values())))
        needs = {pool: self._need([one[pool] for one in self.members.values()]) for pool in pools}
        return Item(f"{PREFIX}{self.name}", 1, needs, priority=self.priority)

    def _need(self, needs: Sequence[Vector]) -> Vector:
        memory = max(need[0] for need in needs)
        return memory, _most_together(needs, memory)

    def in_table(self, place: Place, spec: FleetSpec) -> SwapArea:
        """In GB at the place where it lies."""
        pool = spec.node_pools[place.pool]
        whole = pool.accelerator is not None and pool.sharing == "whole"
        unit = pool.memory_gb if whole else 1 / MB_PER_GB
        needs = {version: needs[place.pool][0] for version, needs in self.members.items()}
        return SwapArea(
            memory_gb=_gb(max(needs.values()), unit),
            models={version: _gb(need, unit) for version, need in sorted(needs.items())},
        )


def _gb(units: int, unit: float) -> float:
    return round(units * unit, 3)


def _most_together(needs: Sequence[Vector], memory: int) -> int:
    """The most compute of members whose memory fits into `memory` together."""
    best = {0: 0}
    for size, compute in needs:
        for used, most in list(best.items()):
            if used + size <= memory:
                best[used + size] = max(best.get(used + size, 0), most + compute)
    return max(best.values())


def area_name(pools: Sequence[str]) -> str:
    """After the pools that it may lie in, short enough for a Ray label."""
    name = ".".join(sorted(pools))
    if len(name) <= _LONGEST:
        return name
    return f"{name[:50]}.{hashlib.sha256(name.encode()).hexdigest()[:12]}"
