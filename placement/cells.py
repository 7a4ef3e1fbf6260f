"""From a packing to cells: which app holds which replicas, under which name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from placement.demand import Demand
from placement.fleet_problem import FleetProblem
from placement.plan import Cell
from placement.problem import Packing, Place, Placed, Problem

# Above it Serve's controller, which looks at every deployment ten times a second, falls behind.
MOST_APPS: Final = 150


def cells_of_packing(
    asked: FleetProblem, packing: Packing, previous: Sequence[Cell] = (), most: int = MOST_APPS
) -> tuple[Cell, ...]:
    """In the order of versions and names. A cell of before keeps its name while it lives, and no
    new one takes the name of one that goes."""
    cells = _named(asked, packing, previous, merge=False)
    if len(cells) > most:
        cells = _named(asked, packing, previous, merge=True)
    return cells


def placed_before(asked: FleetProblem, previous: Iterable[Cell]) -> Packing:
    """What is where now, as items of this problem; what is asked for no more is left out."""
    found: dict[tuple[str, str], int] = {}
    for cell in previous:
        item = asked.item_name(cell.version)
        for place in cell.places if item is not None else ():
            if place in asked.problem.place:
                swapped = item in asked.areas
                # An area is one item: where its members lie apart, the first one's place stays.
                if swapped and any(one == item for one, _ in found):
                    continue
                found[item or "", place] = 1 if swapped else cell.each
    return Packing(tuple(Placed(*key, each) for key, each in sorted(found.items())))


def name_key(name: str) -> tuple[int, str]:
    """The order of names, which is the order in which cells are filled."""
    return len(name), name


def _named(
    asked: FleetProblem, packing: Packing, previous: Sequence[Cell], *, merge: bool
) -> tuple[Cell, ...]:
    before: dict[str, list[Cell]] = {}
    for cell in previous:
        before.setdefault(cell.version, []).append(cell)
    by_item: dict[str, dict[str, int]] = {}
    for placed in packing.placed:
        by_item.setdefault(placed.item, {})[placed.place] = placed.replicas
    cells: list[Cell] = []
    for version in sorted(_versions(asked)):
        item = asked.item_name(version) or version
        own = _Cells(asked.problem, version, item, before.get(version, ()), merge=merge)
        named = own.name(by_item.get(item, {}))
        demand = asked.demands.get(version, Demand(1, 0))
        cells += _with_minimum(named, demand.least, asked.problem.place)
    return tuple(cells)


def _versions(asked: FleetProblem) -> Iterator[str]:
    yield from asked.demands
    for area in asked.areas.values():
        yield from area.members


class _Cells:
    """The cells of one version."""

    def __init__(
        self, problem: Problem, version: str, item: str, before: Sequence[Cell], *, merge: bool
    ) -> None:
        self.problem, self.version, self.item, self.merge = problem, version, item, merge
        self.before = before

    def name(self, at: Mapping[str, int]) -> list[Cell]:
        """at: replicas by place."""
        kept = [cell for one in self.before if (cell := self._kept(one, at)) is not None]
        held = {place for cell in kept for place in cell.places}
        free = (name for name in _names() if name not in {cell.name for cell in self.before})
        groups = self._groups({place: each for place, each in at.items() if place not in held})
        fresh = [
            Cell(self.version, next(free), places, at[places[0]], 0)
            for places in self._interleaved(groups, kept)
        ]
        return sorted([*kept, *fresh], key=lambda cell: name_key(cell.name))

    def _kept(self, cell: Cell, at: Mapping[str, int]) -> Cell | None:
        each = {at.get(place, 0) for place in cell.places}
        if len(each) != 1 or each == {0}:
            return None
        return replace(cell, each=each.pop(), min_replicas=0)

    def _groups(self, at: Mapping[str, int]) -> list[tuple[str, ...]]:
        """Places that share a cell: one each, or all of a zone where Ray has no choice."""
        alike: dict[tuple[object, ...], list[str]] = {}
        # Not in the order of pools, which two files of one fleet may list differently.
        there = (place for place in self.problem.places if place.name in at)
        for place in sorted(there, key=lambda one: (one.zone, one.pool, name_key(one.name))):
            each = at[place.name]
            full = self.merge and self._most(place) == each
            key = (place.zone, place.pool, each) if full else (place.name,)
            alike.setdefault(key, []).append(place.name)
        return [tuple(places) for places in alike.values()]

    def _most(self, place: Place) -> int:
        """Replicas that an empty place could take: with no more than those asked for, Ray puts no
        further one there, whoever else is away."""
        need = self.problem.item[self.item].needs[place.pool]
        return min(size // part for size, part in zip(place.size, need, strict=True) if part)

    def _interleaved(
        self, groups: Sequence[tuple[str, ...]], kept: Sequence[Cell]
    ) -> Iterator[tuple[str, ...]]:
        """The zone with the fewest cells so far goes next, so that they fill evenly."""
        zone_of = {name: place.zone for name, place in self.problem.place.items()}
        cells = Counter(zone_of[cell.places[0]] for cell in kept)
        waiting: dict[str, list[tuple[str, ...]]] = {}
        for group in groups:
            waiting.setdefault(zone_of[group[0]], []).append(group)
        while waiting:
            zone = min(waiting, key=lambda zone: (cells[zone], zone))
            cells[zone] += 1
            yield waiting[zone].pop(0)
            if not waiting[zone]:
                del waiting[zone]


def _with_minimum(cells: Sequence[Cell], least: int, place: Mapping[str, Place]) -> list[Cell]:
    """Those that always run, dealt out one by one: to the zone, then to the machine, then to the
    cell that has the fewest, so that they lie as far apart as all of them do."""
    given = [0] * len(cells)
    zones: Counter[str] = Counter()
    hosts: Counter[str] = Counter()
    where = [place[cell.places[0]] for cell in cells]
    for _ in range(min(least, sum(cell.replicas for cell in cells))):
        open_ = [index for index, cell in enumerate(cells) if given[index] < cell.replicas]
        best = min(open_, key=lambda i: (zones[where[i].zone], hosts[where[i].host], given[i], i))
        given[best] += 1
        zones[where[best].zone] += 1
        hosts[where[best].host] += 1
    return [replace(cell, min_replicas=n) for cell, n in zip(cells, given, strict=True)]


def _names() -> Iterator[str]:
    """The empty one, then b, c, ... z, aa, ab and so on: the first has none, so there is no `a`."""
    yield ""
    for length in count(1):
        for number in range(26**length):
            letters = [chr(97 + number // 26**power % 26) for power in reversed(range(length))]
            if letters != ["a"]:
                yield "".join(letters)
