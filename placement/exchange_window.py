"""The places that a defragmentation looks at together, and what may move among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from placement.occupancy import Occupancy
from placement.problem import Packing, Place, Placed, Problem, Vector

Pinned = frozenset[tuple[str, str]]
"""(item, place): replicas that stay, and none of the item joins them."""


@dataclass(frozen=True)
class Cap:
    """At most `room` replicas of an item at these places together."""

    item: str
    places: frozenset[str]
    room: int


@dataclass(frozen=True)
class Window:
    """A packing `now` that came from the one `before` is changed further.

    before, now: replicas that may move, by place; a move is what is not where it was before.
    room: for those, so without the pinned. caps: of all of an item's replicas in the window.
    """

    problem: Problem
    places: tuple[Place, ...]
    before: Mapping[str, Mapping[str, int]]
    now: Mapping[str, Mapping[str, int]]
    room: Mapping[str, Vector]
    pinned: Pinned
    caps: tuple[Cap, ...]

    @classmethod
    def of(
        cls,
        problem: Problem,
        before: Packing,
        now: Packing,
        places: Sequence[Place],
        pinned: Pinned = frozenset(),
    ) -> Window:
        was, is_ = Occupancy(problem, before), Occupancy(problem, now)
        contents = {p.name: _movable(is_.at(p.name), p.name, pinned) for p in places}
        return cls(
            problem,
            tuple(places),
            {p.name: _movable(was.at(p.name), p.name, pinned) for p in places},
            contents,
            {p.name: _room(problem, p, is_.free(p.name), contents[p.name]) for p in places},
            pinned,
            tuple(_caps(problem, now, contents)),
        )

    @cached_property
    def total(self) -> Counter[str]:
        """Replicas that may move, by item."""
        result: Counter[str] = Counter()
        for content in self.now.values():
            result.update(content)
        return result

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Those that may move; of some none may be left here now."""
        known = {item for content in self.before.values() for item in content}
        return tuple(sorted(known | set(self.total)))

    @cached_property
    def emptiable(self) -> frozenset[str]:
        """Places that can be freed: nothing there is pinned."""
        fixed = {place for _, place in self.pinned}
        return frozenset(name for name, held in self.before.items() if held and name not in fixed)

    def needs_at(self, place: Place) -> dict[str, Vector]:
        """Of the items that may be there."""
        found: dict[str, Vector] = {}
        for name in self.items:
            need = self.problem.item[name].need_at(place)
            if need is not None and (name, place.name) not in self.pinned:
                found[name] = need
        return found

    def packing(self, now: Packing, contents: Mapping[str, Mapping[str, int]]) -> Packing:
        """`now` with these contents of the window's places, and what is pinned there."""
        stay = [
            one
            for one in now.placed
            if one.place not in self.now or (one.item, one.place) in self.pinned
        ]
        new = [
            Placed(item, place, count)
            for place, content in contents.items()
            for item, count in content.items()
            if count
        ]
        return Packing(tuple(sorted(stay + new)), now.unplaced, now.method)


def _movable(held: Mapping[str, int], place: str, pinned: Pinned) -> dict[str, int]:
    return {item: count for item, count in held.items() if (item, place) not in pinned}


def _room(problem: Problem, place: Place, free: Vector, held: Mapping[str, int]) -> Vector:
    memory, compute = free
    for name, count in held.items():
        need = problem.item[name].need_at(place)
        assert need is not None, "it is there"
        memory, compute = memory + count * need[0], compute + count * need[1]
    return memory, compute


def _caps(
    problem: Problem, now: Packing, contents: Mapping[str, Mapping[str, int]]
) -> Iterator[Cap]:
    """What the spread of each item leaves to the window, beside its replicas elsewhere."""
    for name in sorted({item for content in contents.values() for item in content}):
        item = problem.item[name]
        for limit, of_place in ((item.per_host, "host"), (item.per_zone, "zone")):
            if limit is None:
                continue
            elsewhere: Counter[str] = Counter()
            for one in now.placed:
                if one.item == name and name not in contents.get(one.place, {}):
                    elsewhere[getattr(problem.place[one.place], of_place)] += one.replicas
            groups: dict[str, set[str]] = {}
            for place in contents:
                groups.setdefault(getattr(problem.place[place], of_place), set()).add(place)
            for group, names in sorted(groups.items()):
                yield Cap(name, frozenset(names), limit - elsewhere[group])
