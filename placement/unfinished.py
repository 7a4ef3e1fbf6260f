"""What a move that was broken off has left behind, known from the file and the drains alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace

from placement.cells import name_key
from placement.demand import Demand
from placement.fleet_problem import FleetProblem
from placement.plan import Cell
from placement.problem import Place


def settled(
    asked: FleetProblem, cells: Sequence[Cell], drained: Set[str], ready: Mapping[str, int]
) -> tuple[Cell, ...]:
    """The cells without replicas that are there twice.

    ready: replicas by app. Of a version with more than it asks for, those go without which the rest
    lies apart as asked. Of these first those that should serve and do not yet: the move is undone.
    Then cells that are drained: it is finished. Then those named last. Never a part of a cell that
    serves: that is left to the next plan.
    """
    left: dict[str, Cell] = {}
    for version, demand in asked.demands.items():
        own = [cell for cell in cells if cell.version == version]
        kept = _Version(demand, asked.problem.place, drained, ready).without_surplus(own)
        left |= {cell.app: cell for cell in kept}
    alone = {cell.app: cell for cell in cells if cell.version not in asked.demands}
    left |= alone
    return tuple(left[cell.app] for cell in cells if cell.app in left)


class _Version:
    """One version, and what is known of its cells."""

    def __init__(
        self,
        demand: Demand,
        place: Mapping[str, Place],
        drained: Set[str],
        ready: Mapping[str, int],
    ) -> None:
        self._demand, self._place = demand, place
        self._drained, self._ready = drained, ready

    def without_surplus(self, cells: Sequence[Cell]) -> list[Cell]:
        left = list(cells)
        while (surplus := sum(cell.replicas for cell in left) - self._demand.replicas) > 0:
            ways = [way for cell in left if (way := self._without(left, cell, surplus))]
            if not ways:
                break
            left = min(ways)[-1]
        return left

    def _without(
        self, cells: Sequence[Cell], cell: Cell, surplus: int
    ) -> tuple[int, int, int, list[int], list[Cell]] | None:
        """How soon it goes, and what is left then; None where it may not."""
        missing = max(cell.replicas - self._ready.get(cell.app, 0), 0)
        less = min(surplus, missing if self._is_late(cell) else cell.replicas)
        part = less < cell.replicas
        if less <= 0 or (part and (len(cell.places) > 1 or less > missing)):
            return None
        each = cell.each - less if part else 0
        smaller = replace(cell, each=each, min_replicas=min(cell.min_replicas, each))
        left = [smaller if one is cell else one for one in cells if part or one is not cell]
        length, name = name_key(cell.name)
        order = 0 if self._is_late(cell) else 1 if cell.app in self._drained else 2
        return self._too_near(left), order, -length, [-ord(letter) for letter in name], left

    def _is_late(self, cell: Cell) -> bool:
        """One that may sleep is as it should be without a replica."""
        return self._ready.get(cell.app, 0) < cell.min_replicas

    def _too_near(self, cells: Iterable[Cell]) -> int:
        """Replicas above what a zone or a machine may have."""
        zones, hosts = Counter[str](), Counter[str]()
        for cell in cells:
            for place in (self._place[name] for name in cell.places if name in self._place):
                zones[place.zone] += cell.each
                hosts[place.host] += cell.each
        return _above(zones, self._demand.per_zone) + _above(hosts, self._demand.per_host)


def _above(counts: Counter[str], most: int | None) -> int:
    return 0 if most is None else sum(max(count - most, 0) for count in counts.values())
