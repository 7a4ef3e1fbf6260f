"""The master program: cover the demand with columns at the least price (HiGHS, through scipy)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csc_array

from modelyard.contract.errors import ModelyardError
from placement.grouped import Pattern

_SHORTAGE = 10
"""What a replica left over costs, in prices of the dearest place: more than any place for it."""


class SolverFailed(ModelyardError):
    """The solver gave up: what was found until then has to do."""


class Column(NamedTuple):
    """A kind of place and one content of it."""

    kind: int
    pattern: Pattern


class Master(NamedTuple):
    """price: of the plan. places: of each column. duals: what one more replica of a type costs.
    rents: what one more place of a kind would save."""

    price: float
    places: NDArray[np.float64]
    duals: NDArray[np.float64]
    rents: NDArray[np.float64]


def solve(
    columns: Sequence[Column],
    demand: Sequence[int],
    supply: Sequence[int] | None,
    prices: Sequence[int],
) -> Master:
    """supply: of each kind; None for as many as one likes. prices: of the kinds, all positive.

    Raises SolverFailed.
    """
    unit = max(prices)
    rows, right = _rows(columns, demand, supply, len(prices))
    cost = [prices[column.kind] / unit for column in columns] + [float(_SHORTAGE)] * len(demand)
    found = linprog(cost, A_ub=rows, b_ub=right, bounds=(0, None), method="highs-ds")
    if found.x is None:  # it is feasible (everything short) and bounded: HiGHS gave up
        raise SolverFailed(f"HiGHS found no plan: {found.message}")
    margin = -np.asarray(found.ineqlin.marginals) * unit
    rents = margin[len(demand) :] if supply else np.zeros(len(prices))
    places = np.asarray(found.x)[: len(columns)]
    return Master(float(found.fun) * unit, places, margin[: len(demand)], rents)


def solve_whole(
    columns: Sequence[Column],
    demand: Sequence[int],
    supply: Sequence[int],
    prices: Sequence[int],
    *,
    nodes: int,
) -> list[int] | None:
    """Whole numbers of places; None where none were found within so many branches."""
    rows, right = _rows(columns, demand, supply, len(supply))
    unit = max(prices)
    cost = [prices[column.kind] / unit for column in columns] + [float(_SHORTAGE)] * len(demand)
    whole = [1] * len(columns) + [0] * len(demand)
    found = milp(
        cost,
        integrality=whole,
        bounds=Bounds(0, np.inf),
        constraints=LinearConstraint(rows, -np.inf, right),
        options={"node_limit": nodes},
    )
    return None if found.x is None else [round(x) for x in found.x[: len(columns)]]


def _rows(
    columns: Sequence[Column], demand: Sequence[int], supply: Sequence[int] | None, kinds: int
) -> tuple[csc_array, list[int]]:
    """-(what is covered) - shortage <= -demand; places of a kind <= supply."""
    types = len(demand)
    entries = [
        (type_, index, -copies)
        for index, column in enumerate(columns)
        for type_, copies in column.pattern
    ]
    entries += [(type_, len(columns) + type_, -1) for type_ in range(types)]
    if supply:
        entries += [(types + column.kind, index, 1) for index, column in enumerate(columns)]
    row, col, value = zip(*entries, strict=True)
    shape = types + (kinds if supply else 0), len(columns) + types
    right = [-number for number in demand] + list(supply or ())
    return csc_array((value, (row, col)), shape=shape), right
