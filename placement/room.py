"""What is free at each place while replicas are put there one after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from placement.problem import Item, Packing, Place, Placed, Problem, Vector


class Room:
    """Places with their contents; counts by host and zone of the items that have caps."""

    def __init__(self, problem: Problem) -> None:
        self._free: dict[str, Vector] = {}
        self._placed: dict[str, dict[str, int]] = {}
        # Of items nothing was added to: making ten thousand records anew is half of an addition.
        self._as_before: dict[str, list[Placed]] = {}
        self._at_host: Counter[tuple[str, str]] = Counter()
        self._in_zone: Counter[tuple[str, str]] = Counter()
        self.problem = problem

    @property
    def in_use(self) -> Mapping[str, Vector]:
        """What is free, by the names of the places with something in them."""
        return self._free

    def most(self, item: Item, place: Place) -> int:
        """How many more replicas may be put there, one version's caps and the room counted."""
        need = item.need_at(place)
        if need is None:
            return 0
        memory, compute = self._free.get(place.name, place.size)
        most = item.replicas
        if need[0]:
            most = min(most, memory // need[0])
        if need[1]:
            most = min(most, compute // need[1])
        if item.per_host is not None:
            most = min(most, item.per_host - self._at_host[item.name, place.host])
        if item.per_zone is not None:
            most = min(most, item.per_zone - self._in_zone[item.name, place.zone])
        return max(0, most)

    def put(self, item: Item, place: Place, replicas: int) -> None:
        """Not checked: see `most`."""
        need, name = item.needs[place.pool], place.name
        memory, compute = self._free.get(name, place.size)
        self._free[name] = memory - need[0] * replicas, compute - need[1] * replicas
        own = self._placed.get(item.name)
        if own is None:
            own = self._placed[item.name] = {}
        own[name] = own.get(name, 0) + replicas
        if self._as_before:
            self._as_before.pop(item.name, None)
        if item.per_host is not None:
            self._at_host[item.name, place.host] += replicas
        if item.per_zone is not None:
            self._in_zone[item.name, place.zone] += replicas

    def put_all(self, item: Item, records: Iterable[Placed]) -> bool:
        """All the records of an item without caps, of which nothing was put yet; False, and nothing
        is put, where one does not fit."""
        places, needs, zones = self.problem.place, item.needs, item.zones
        after: dict[str, Vector] = {}
        own: dict[str, int] = {}
        left = item.replicas
        for one in records:
            name, replicas = one.place, one.replicas
            place = places.get(name)
            if place is None or name in own or (zones is not None and place.zone not in zones):
                return False
            need = needs.get(place.pool)
            if need is None:
                return False
            memory, compute = self._free.get(name, place.size)
            memory, compute = memory - need[0] * replicas, compute - need[1] * replicas
            left -= replicas
            if memory < 0 or compute < 0 or left < 0:
                return False
            after[name], own[name] = (memory, compute), replicas
        self._free.update(after)
        self._placed[item.name] = own
        self._as_before[item.name] = sorted(records, key=_place)
        return True

    def missing(self) -> dict[str, int]:
        """Replicas without a place, by item."""
        missing = {}
        for item in self.problem.items:
            left = item.replicas - sum(self._placed.get(item.name, {}).values())
            if item.replicas > 0 and left:
                missing[item.name] = left
        return missing

    def packing(self, method: str) -> Packing:
        placed: list[Placed] = []
        for item in sorted(self._placed):
            if (before := self._as_before.get(item)) is not None:
                placed += before
            else:
                placed += [Placed(item, *own) for own in sorted(self._placed[item].items())]
        return Packing(tuple(placed), tuple(sorted(self.missing().items())), method)


def _place(one: Placed) -> str:
    return one.place
