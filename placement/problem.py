"""The packing problem: places with room, items that need some of it.

Integers alone, so that sums are exact and an answer does not depend on the order of additions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

Vector = tuple[int, int]
"""(memory in MB, twentieths of a device's compute) of a shared device; (devices, 0) of a machine
whose devices are given out whole; (memory in MB, hundredths of a CPU) of one without devices."""


@dataclass(frozen=True, slots=True)
class Place:
    """What one Ray node offers: a shared device, or a machine.

    name: its label `modelyard/place`. host: the machine, which is what `nodes` of a spread are.
    size: what it holds while empty. price: per hour, in millionths; a shared device's is its part
    of the machine's. devices: accelerators, 0 for a machine without.
    """

    name: str
    pool: str
    host: str
    zone: str
    size: Vector
    price: int
    devices: int


@dataclass(frozen=True, slots=True)
class Item:
    """The replicas of one version that must have a place.

    needs: of one replica, by pool; it cannot be in a pool that is not there. zones: the only ones
    it may be in. per_host, per_zone: at most so many replicas. priority: the higher is placed
    first where there is not enough room for all.
    """

    name: str
    replicas: int
    needs: Mapping[str, Vector]
    zones: frozenset[str] | None = None
    per_host: int | None = None
    per_zone: int | None = None
    priority: int = 0

    def need_at(self, place: Place) -> Vector | None:
        """Of one replica there; None where it may not be."""
        if self.zones is not None and place.zone not in self.zones:
            return None
        return self.needs.get(place.pool)


@dataclass(frozen=True)
class Problem:
    """Places and items, each with a name of its own."""

    places: tuple[Place, ...]
    items: tuple[Item, ...]

    @cached_property
    def place(self) -> Mapping[str, Place]:
        return {place.name: place for place in self.places}

    @cached_property
    def item(self) -> Mapping[str, Item]:
        return {item.name: item for item in self.items}


@dataclass(frozen=True, slots=True, order=True)
class Placed:
    """Replicas of an item at a place."""

    item: str
    place: str
    replicas: int


@dataclass(frozen=True)
class Packing:
    """An answer: who is where, in order; and what found no place, (item, replicas)."""

    placed: tuple[Placed, ...]
    unplaced: tuple[tuple[str, int], ...] = ()
    method: str = ""

    @cached_property
    def at(self) -> Mapping[tuple[str, str], int]:
        """Replicas by (item, place)."""
        return {(one.item, one.place): one.replicas for one in self.placed}

    @cached_property
    def used(self) -> frozenset[str]:
        """Places with at least one replica."""
        return frozenset(one.place for one in self.placed)


@dataclass(frozen=True, slots=True)
class Bound:
    """What no packing of all items can be below, whoever finds it, with as many places of each
    kind as one likes: `price` per hour in millionths, and `places`. by: what each argument alone
    gives for the price ("sum", "lp", "spread"); the largest holds. proof: how it was certified."""

    price: int
    places: int
    by: Mapping[str, int] = field(default_factory=dict)
    proof: str = ""
