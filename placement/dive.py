"""From the linear relaxation to whole places: diving, each dive finished by the heuristics.

Fix the whole part of the plan, solve again for what is left, and where nothing is whole, round the
largest fraction up (Sadykov et al., "Primal heuristics for branch and price", INFORMS Journal on
Computing 31(2), 2019). What is left is soon small enough for greedy rules to finish well, so every
step is tried as the last one, and the best is kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from placement.answer import Answer, finished
from placement.columns import Pricer
from placement.grouped import Filled, Kind, Pattern, Type
from placement.master import Column, Master, SolverFailed, solve, solve_whole

_TINY = 1e-6
_PRICING_ROUNDS = 2
_MOST_BRANCHES = 300
_WHOLE_UP_TO = 300
"""Replicas; the integer program over the columns is small enough to be worth a try."""


def best_whole(
    kinds: Sequence[Kind], types: Sequence[Type], columns: Sequence[Column], *, target: int
) -> Answer:
    """target: a price that cannot be improved upon; the search ends there."""
    dive = _Dive(kinds, types, columns)
    best = dive.down(target)
    if (best.shortage or best.price > target) and sum(dive.all_demand) <= _WHOLE_UP_TO:
        best = min(best, _by_branching(kinds, types, dive.columns, best), key=lambda one: one[:3])
    return best


class _Dive:
    def __init__(
        self, kinds: Sequence[Kind], types: Sequence[Type], columns: Sequence[Column]
    ) -> None:
        self.kinds, self.types = kinds, types
        self.columns = list(columns)
        self.all_demand = [type_.replicas for type_ in types]
        self._demand = list(self.all_demand)
        self._supply = [kind.supply for kind in kinds]
        self._fixed: list[Filled] = []

    def down(self, target: int) -> Answer:
        best = finished(self.kinds, self.types, (), self._demand)
        while any(self._demand) and (best.shortage or best.price > target):
            try:
                plan = self._solve()
            except SolverFailed:
                break
            if not self._fix_whole(plan) and not self._fix_largest(plan):
                break  # no place of any use is left
            tried = finished(self.kinds, self.types, self._fixed, self._demand)
            best = min(best, tried._replace(method="column generation"), key=lambda one: one[:3])
        return best

    def _solve(self) -> Master:
        types = [
            type_._replace(replicas=left, most=min(type_.most, left))
            for type_, left in zip(self.types, self._demand, strict=True)
        ]
        pricer = Pricer(self.kinds, types, up=True)
        limited = self._supply
        plan = solve(self.columns, self._demand, limited, pricer.prices)
        for _ in range(_PRICING_ROUNDS):
            known = set(self.columns)
            duals, rents = pricer.whole(plan.duals), pricer.whole(plan.rents)
            fresh = [one for one in pricer.columns(duals, rents)[0] if one not in known]
            if not fresh:
                break
            self.columns += fresh
            plan = solve(self.columns, self._demand, limited, pricer.prices)
        return plan

    def _fix_whole(self, plan: Master) -> bool:
        whole = [
            self._fix(column, math.floor(places + _TINY))
            for column, places in zip(self.columns, plan.places, strict=True)
            if places >= 1 - _TINY
        ]
        return any(whole)

    def _fix_largest(self, plan: Master) -> bool:
        index = int(plan.places.argmax())
        return bool(plan.places[index] > _TINY) and self._fix(self.columns[index], 1)

    def _fix(self, column: Column, times: int) -> bool:
        """As often as asked and filled; where less is left of something, without that."""
        fixed = False
        while times and self._supply[column.kind]:
            pattern = _cut(column.pattern, self._demand)
            if not pattern:
                break
            places = min(self._demand[type_] // copies for type_, copies in pattern)
            places = min(times, places, self._supply[column.kind])
            self._fixed.append(Filled(column.kind, pattern, places))
            self._supply[column.kind] -= places
            for type_, copies in pattern:
                self._demand[type_] -= copies * places
            times -= places
            fixed = True
        return fixed


def _cut(pattern: Pattern, demand: Sequence[int]) -> Pattern:
    """No more of a type than there is demand for."""
    return tuple((type_, own) for type_, copies in pattern if (own := min(copies, demand[type_])))


def _by_branching(
    kinds: Sequence[Kind], types: Sequence[Type], columns: Sequence[Column], best: Answer
) -> Answer:
    """The integer program over the columns there are: rarely better, and then it proves it."""
    demand = [type_.replicas for type_ in types]
    supply, prices = [kind.supply for kind in kinds], [kind.price for kind in kinds]
    times = solve_whole(columns, demand, supply, prices, nodes=_MOST_BRANCHES)
    if times is None:
        return best
    filled = []
    for column, places in zip(columns, times, strict=True):
        for _ in range(places):
            if pattern := _cut(column.pattern, demand):
                filled.append(Filled(column.kind, pattern, 1))
            for type_, own in pattern:
                demand[type_] -= own
    tried = finished(kinds, types, filled, demand)
    return tried._replace(method="column generation and branching")
