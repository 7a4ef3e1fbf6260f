"""Column generation: the linear relaxation over contents of places, and what it proves.

Gilmore & Gomory 1961 (see `pricing`): a column is the content of one place; the master program
covers the demand at the least price; new columns come from a knapsack at the duals. The duals are
rounded to integers and priced exactly, so each round certifies a bound (Farley, "A note on bounding
a class of linear programming problems, including cutting stock problems", Operations Research
38(5), 1990) that owes nothing to floating point.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import gcd
from typing import NamedTuple

from placement import prices
from placement.bins import Bins, Sizes, copies_that_fit
from placement.grid import grid
from placement.grouped import NO_LIMIT, Kind, Type
from placement.heuristics import ALL
from placement.master import Column, SolverFailed, solve
from placement.pricing import Choice, best_pattern

_COLUMNS_A_ROUND = 8
"""Of one kind, of different types: the master costs more time than a knapsack."""
DUAL_UNITS = 10**12
"""What the dearest place is worth in integer duals; sums stay far inside 64 bits."""


class Relaxation(NamedTuple):
    """columns: what to build from. bound: no packing's price is below. duals: what a replica of
    each type is worth, the dearest place being worth `DUAL_UNITS`."""

    columns: tuple[Column, ...]
    bound: int
    duals: tuple[int, ...]


class Pricer:
    """New columns, and the bound of their duals, at sizes of one rounding."""

    def __init__(self, kinds: Sequence[Kind], types: Sequence[Type], *, up: bool) -> None:
        self.kinds, self.types = kinds, types
        self.prices = tuple(kind.price for kind in kinds)
        self.scale = max(1, DUAL_UNITS // max(self.prices))
        needs = [[type_.needs[index] for type_ in types] for index in range(len(kinds))]
        self.grids = [grid(own, kind.size) for own, kind in zip(needs, kinds, strict=True)]
        self.exact = all(own.exact for own in self.grids)
        self._needs = [
            [need and own.steps(need, up=up) for need in column]
            for own, column in zip(self.grids, needs, strict=True)
        ]

    def whole(self, prices: Iterable[float]) -> list[int]:
        """Duals or rents as integers."""
        return [max(0, int(price * self.scale)) for price in prices]

    def choices(
        self, duals: Sequence[int], kind: int, apart: frozenset[int] = frozenset()
    ) -> list[Choice]:
        """What may be on a place of the kind and is worth something, without the types `apart`."""
        return [
            Choice(index, need, duals[index], min(type_.most, type_.replicas))
            for index, (need, type_) in enumerate(zip(self._needs[kind], self.types, strict=True))
            if need is not None and duals[index] > 0 and index not in apart
        ]

    def columns(self, duals: Sequence[int], rents: Sequence[int]) -> tuple[list[Column], list[int]]:
        """Columns worth more than the price and rent of their place; the best worth by kind."""
        found, best = [], []
        for kind, price in enumerate(self.prices):
            cost = price * self.scale + rents[kind]
            apart: frozenset[int] = frozenset()
            for round_ in range(_COLUMNS_A_ROUND):
                value, chosen = best_pattern(
                    self.choices(duals, kind, apart), self.grids[kind].size
                )
                if round_ == 0:
                    best.append(value)
                if value <= cost + cost // 10**7:
                    break
                found.append(Column(kind, tuple(sorted(chosen.items()))))
                apart |= chosen.keys()
        return found, best

    def bound(self, duals: Sequence[int], best: Sequence[int]) -> int:
        """Farley's: the duals, shrunk until no place is worth more than its price, are feasible."""
        total = sum(dual * type_.replicas for dual, type_ in zip(duals, self.types, strict=True))
        # The kind whose worth is most above its price: the greatest value / (price x scale).
        value, price = 1, 0
        for own_value, own_price in zip(best, self.prices, strict=True):
            if price == 0 or own_value * price > value * own_price:
                value, price = own_value, own_price
        return -(-total * price // value) if value > 0 else 0


def relaxation(
    kinds: Sequence[Kind], types: Sequence[Type], *, up: bool, limited: bool, rounds: int = 300
) -> Relaxation:
    """up: sizes rounded for a packing; else for a bound. limited: by the supply of each kind; then
    the bound says nothing. Every price is positive. rounds: of pricing, at most."""
    up = up and not Pricer(kinds, types, up=up).exact
    unit = gcd(*(kind.price for kind in kinds))
    own = tuple(
        kind._replace(price=kind.price // unit, supply=kind.supply if limited else NO_LIMIT)
        for kind in kinds
    )
    columns, bound, duals = _relaxation(own, tuple(types), up, limited, rounds)
    return Relaxation(columns, bound * unit, duals)


@lru_cache(maxsize=32)
def _relaxation(
    kinds: tuple[Kind, ...], types: tuple[Type, ...], up: bool, limited: bool, rounds: int
) -> Relaxation:
    """Kept, because a packing and its bound need the same where the sizes are exact."""
    pricer = Pricer(kinds, types, up=up)
    columns = dict.fromkeys(_first(kinds, types))
    demand = [type_.replicas for type_ in types]
    supply = [kind.supply for kind in kinds] if limited else None
    bound, duals = 0, [0] * len(types)
    for _ in range(rounds):
        try:
            plan = solve(list(columns), demand, supply, pricer.prices)
        except SolverFailed:
            break
        duals, rents = pricer.whole(plan.duals), pricer.whole(plan.rents)
        found, best = pricer.columns(duals, rents)
        bound = max(bound, pricer.bound(duals, best))
        fresh = [column for column in found if column not in columns]
        if not fresh or (not limited and prices.round_up(bound, pricer.prices) >= plan.price):
            break
        columns.update(dict.fromkeys(fresh))
    return Relaxation(tuple(columns), bound, tuple(duals))


def _first(kinds: Sequence[Kind], types: Sequence[Type]) -> list[Column]:
    """What the heuristics fill, and each type alone."""
    found = []
    sizes = Sizes(kinds, types)
    for heuristic in ALL.values():
        bins = Bins(sizes, [NO_LIMIT] * len(kinds))
        heuristic(bins, [type_.replicas for type_ in types])
        found += [Column(one.kind, one.pattern) for one in bins.filled()]
    fit = copies_that_fit(sizes.need, sizes.size)
    for index, type_ in enumerate(types):
        for kind in range(len(kinds)):
            if copies := min(int(fit[index, kind]), type_.most, type_.replicas):
                found.append(Column(kind, ((index, copies),)))
    return found
