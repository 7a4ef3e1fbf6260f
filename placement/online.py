"""Add what is missing, one replica after the other, and move nothing.

Two rules, weighed by how much useful room the places in use have free. While there is little (a
fleet that grows), a replica goes where it takes least off the worth of the free room (`bids`), or
opens a place where that is cheaper; states of which many places are open already cost a little
more, so that what is left open stays diverse (the idea of sum of squares: Csirik et al., "On the
sum-of-squares algorithm for bin packing", Journal of the ACM 53(1), 2006). The bids hold that
whatever is free will be filled; after departures there is more of it than newcomers will fill, and
saving it for the best of them only opens places. So the more there is, the more best fit decides.
"""

from __future__ import annotations

from collections import defaultdict
from math import isqrt

from placement.bids import Bids, bids
from placement.grouped import Grouped, Kind, grouped
from placement.problem import Item, Packing, Place, Placed, Problem, Vector
from placement.room import Room

_RELUCTANCE = 30_000
_CROWDING = 100_000
"""In millionths of the dearest place: to open one; and for each place in the same state, divided by
the root of the places in use. Both measured (docs/placement.md)."""
_WASTED = 300_000
"""In millionths of the place: what best fit charges for leaving all of one dimension free."""
_STALE_PERCENT = 20
"""Of the price of the places in use: where their free room is worth so much, best fit decides."""

State = tuple[int, Vector]
"""A kind of place, and what is free there."""


def add(problem: Problem, fixed: Packing) -> Packing:
    """Keeps every replica of `fixed` that is still asked for and still fits; of too many it drops
    those in the emptiest places. Then places the rest, the highest priority first."""
    room = Room(problem)
    _keep(room, fixed)
    complete(room, may_open=True)
    return room.packing("added, nothing moved" if fixed.placed else "one by one")


def complete(room: Room, *, may_open: bool = False) -> None:
    """Places what is missing. may_open: a place though there is room in one in use, where that is
    cheaper."""
    missing = room.missing()
    if not missing:
        return
    groups = grouped(room.problem, by_zone=False)
    if not groups.types:
        return
    shelf = _Shelf(room, groups, may_open=may_open)
    items = [room.problem.item[name] for name in missing]
    for item in sorted(items, key=lambda item: (-item.priority, -shelf.share(item), item.name)):
        for _ in range(missing[item.name]):
            if not shelf.place(item):
                break  # nor will there be room for the next one


class _Shelf:
    """Places by state: hundreds, however many places there are."""

    def __init__(self, room: Room, groups: Grouped, *, may_open: bool) -> None:
        self._room, self._kinds = room, groups.kinds
        self._may_open = may_open
        self._bids: Bids = bids(_priced(groups.kinds), groups.types)
        self._used: dict[State, list[Place]] = defaultdict(list)
        self._empty: list[list[Place]] = []
        in_use = room.in_use
        for kind, places in enumerate(groups.places):
            self._empty.append([place for place in reversed(places) if place.name not in in_use])
            for place in places:
                if place.name in in_use:
                    self._used[kind, in_use[place.name]].append(place)
        self._in_use = len(in_use)
        self._paid = self._free_worth = 0
        for (kind, free), alike in self._used.items():
            self._paid += self._bids.price(kind) * len(alike)
            self._free_worth += self._bids.worth(kind, free) * len(alike)
        self._type = {
            part.item: type_ for type_, parts in enumerate(groups.parts) for part in parts
        }
        self._needs = [type_.needs for type_ in groups.types]

    def share(self, item: Item) -> float:
        """Of the place where it takes least."""
        if item.name not in self._type:
            return 0.0
        needs = self._needs[self._type[item.name]]
        return min(
            max(need[0] / max(kind.size[0], 1), need[1] / max(kind.size[1], 1))
            for need, kind in zip(needs, self._kinds, strict=True)
            if need is not None
        )

    def place(self, item: Item) -> bool:
        """One replica; False where there is no room."""
        if item.name not in self._type:
            return False
        needs = self._needs[self._type[item.name]]
        costs = self._costs(needs)
        capped = item.per_host is not None or item.per_zone is not None
        for _, opened, kind, free in sorted(costs) if capped else [min(costs)] if costs else []:
            places = self._empty[kind] if opened else self._used[kind, free]
            for index in reversed(range(len(places))):
                if self._room.most(item, places[index]):
                    self._put(item, (kind, free), places.pop(index), opened=opened)
                    return True
        return False

    def _costs(
        self, needs: tuple[Vector | None, ...]
    ) -> list[tuple[tuple[bool, int], bool, int, Vector]]:
        trust = self._trust()
        crowding = _CROWDING // isqrt(max(25, self._in_use))
        costs = []
        for (kind, free), places in self._used.items():
            need = needs[kind]
            if need is None or need[0] > free[0] or need[1] > free[1] or not places:
                continue
            after = free[0] - need[0], free[1] - need[1]
            left = self._bids.worth(kind, after)
            cost = self._bids.worth(kind, free) - left
            cost += crowding * (self._crowd(kind, after, left) - len(places))
            cost = trust * cost + (100 - trust) * self._wasted(kind, after)
            costs.append(((False, cost), False, kind, free))
        for kind, empty in enumerate(self._empty):
            need, size = needs[kind], self._kinds[kind].size
            if need is None or not empty:
                continue
            after = size[0] - need[0], size[1] - need[1]
            left = self._bids.worth(kind, after)
            bid = self._bids.new(kind, after) + crowding * self._crowd(kind, after, left)
            cost = trust * bid + (100 - trust) * (
                self._bids.price(kind) + self._wasted(kind, after)
            )
            cost += 100 * _RELUCTANCE
            costs.append(((not self._may_open, cost), True, kind, size))
        return costs

    def _trust(self) -> int:
        """In the bids, in percent."""
        stale = _STALE_PERCENT * self._paid
        return max(0, 100 - 100 * 100 * self._free_worth // stale) if stale else 100

    def _wasted(self, kind: int, free: Vector) -> int:
        size = self._kinds[kind].size
        parts = sum(_WASTED * own // max(whole, 1) for own, whole in zip(free, size, strict=True))
        return parts * self._bids.price(kind) // 10**6

    def _crowd(self, kind: int, free: Vector, worth: int) -> int:
        """Places in a state; those of no more use do not count."""
        return len(self._used[kind, free]) if worth and (kind, free) in self._used else 0

    def _put(self, item: Item, state: State, place: Place, *, opened: bool) -> None:
        self._room.put(item, place, 1)
        if not opened and not self._used[state]:
            del self._used[state]
        kind, free = state
        after = self._room.in_use[place.name]
        if opened:
            self._in_use += 1
            self._paid += self._bids.price(kind)
        else:
            self._free_worth -= self._bids.worth(kind, free)
        self._free_worth += self._bids.worth(kind, after)
        self._used[kind, after].append(place)


def _priced(kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """The relaxation needs prices; where there are none every place counts as one."""
    return tuple(kind._replace(price=max(kind.price, 1)) for kind in kinds)


def _keep(room: Room, fixed: Packing) -> None:
    problem = room.problem
    placed: dict[str, list[Placed]] = defaultdict(list)
    for one in fixed.placed:
        placed[one.item].append(one)
    load: dict[str, float] | None = None
    for item in sorted(problem.items, key=lambda item: (-item.priority, item.name)):
        records, left = placed[item.name], item.replicas
        capped = item.per_host is not None or item.per_zone is not None
        if not records or (not capped and room.put_all(item, records)):
            continue
        own = [(one.place, one.replicas) for one in records if one.place in problem.place]
        if sum(replicas for _, replicas in own) > left:
            load = _load(problem, fixed) if load is None else load
            own = _fullest_first(own, load)
        for name, replicas in own:
            place = problem.place[name]
            if kept := min(replicas, left, room.most(item, place)):
                room.put(item, place, kept)
                left -= kept


def _fullest_first(own: list[tuple[str, int]], load: dict[str, float]) -> list[tuple[str, int]]:
    return sorted(own, key=lambda one: (-load[one[0]], one[0]))


def _load(problem: Problem, packing: Packing) -> dict[str, float]:
    """How full each place is, by memory: enough to tell the emptiest."""
    load: dict[str, float] = defaultdict(float)
    for one in packing.placed:
        place, item = problem.place.get(one.place), problem.item.get(one.item)
        if place is not None and item is not None:
            need = item.needs.get(place.pool, (0, 0))
            load[one.place] += need[0] * one.replicas / max(place.size[0], 1)
    return load
