"""Who is where while replicas are taken away and put elsewhere, and what room that leaves."""

from __future__ import annotations

from collections import Counter, defaultdict

from placement.problem import Item, Packing, Place, Placed, Problem


class Occupancy:
    """A packing that changes, with the room that is left at each place."""

    def __init__(self, problem: Problem, packing: Packing) -> None:
        self._problem = problem
        self._free = {place.name: place.size for place in problem.places}
        self._at: dict[str, Counter[str]] = defaultdict(Counter)
        self._in_host: Counter[tuple[str, str]] = Counter()
        self._in_zone: Counter[tuple[str, str]] = Counter()
        for one in packing.placed:
            self.put(problem.item[one.item], problem.place[one.place], one.replicas)

    def at(self, place: str) -> dict[str, int]:
        """Replicas there, by item."""
        return {item: count for item, count in self._at[place].items() if count}

    def free(self, place: str) -> tuple[int, int]:
        return self._free[place]

    def room_for(self, item: Item, place: Place) -> bool:
        """For one more, in the place and within the item's spread."""
        need, free = item.need_at(place), self._free[place.name]
        if need is None or need[0] > free[0] or need[1] > free[1]:
            return False
        on_host = self._in_host[item.name, place.host]
        if item.per_host is not None and on_host >= item.per_host:
            return False
        return item.per_zone is None or self._in_zone[item.name, place.zone] < item.per_zone

    def put(self, item: Item, place: Place, replicas: int = 1) -> None:
        need, free = item.need_at(place), self._free[place.name]
        if need is None:
            raise ValueError(f"{item.name} may not be at {place.name}")
        self._free[place.name] = (free[0] - replicas * need[0], free[1] - replicas * need[1])
        self._at[place.name][item.name] += replicas
        self._in_host[item.name, place.host] += replicas
        self._in_zone[item.name, place.zone] += replicas

    def take(self, item: Item, place: Place, replicas: int = 1) -> None:
        self.put(item, place, -replicas)

    def move(self, item: Item, source: Place, target: Place) -> bool:
        """One replica, if it may: both places are held meanwhile, its spread is as it is after."""
        self.take(item, source)
        if not self.room_for(item, target):
            self.put(item, source)
            return False
        self.put(item, target)
        return True

    def packing(self) -> Packing:
        placed = sorted(
            Placed(item, place, count)
            for place, items in self._at.items()
            for item, count in items.items()
            if count
        )
        return Packing(tuple(placed))
