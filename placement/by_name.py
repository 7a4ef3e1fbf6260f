"""A packing by one integer program over names: for small problems that nothing else has solved.

Types and counts (`grouped`) deal an item with a cap per zone out beforehand, and may deal it
wrongly where room is tight. Here every replica count at every place is a variable, so an answer is
found if there is one; beyond some hundred replicas it takes too long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from placement.problem import Item, Packing, Place, Placed, Problem, Vector
from placement.valid import violations

REPLICAS: Final = 300
PAIRS: Final = 20_000
# Nodes of the search and not seconds, so that an answer does not depend on the machine's load.
_NODES: Final = 2000
_GAP: Final = 0.02

_Row = tuple[list[int], list[float], float, float]  # columns, weights, at least, at most


_INFEASIBLE: Final = 2  # scipy's status


class Tried(NamedTuple):
    """packing: every replica at a place, nearly as cheap as can be; None where none was found.
    impossible: the solver says that there is none, in floating point: its word, no certificate."""

    packing: Packing | None = None
    impossible: bool = False


def by_name(problem: Problem) -> Tried:
    """Neither where the problem is too large. The same whatever the order of places and items:
    the solver's answer depends on that of rows and columns."""
    problem = Problem(
        tuple(sorted(problem.places, key=lambda one: one.name)),
        tuple(sorted(problem.items, key=lambda one: one.name)),
    )
    pairs = [
        (item, place, need)
        for item in problem.items
        for place in problem.places
        if (need := item.need_at(place)) is not None
    ]
    if sum(item.replicas for item in problem.items) > REPLICAS or not 0 < len(pairs) <= PAIRS:
        return Tried()
    columns = {(item.name, place.name): n for n, (item, place, _) in enumerate(pairs)}
    opened = {place.name: len(pairs) + n for n, place in enumerate(problem.places)}
    width = len(pairs) + len(opened)
    cost = np.zeros(width)
    upper = np.array([float(item.replicas) for item, _, _ in pairs] + [1.0] * len(opened))
    for place in problem.places:
        cost[opened[place.name]] = max(place.price, 1) / 1e6
    rows = list(_rows(problem, pairs, columns, opened))
    found = milp(
        cost,
        integrality=np.ones(width),
        bounds=Bounds(np.zeros(width), upper),
        constraints=_constraint(rows, width),
        options={"node_limit": _NODES, "mip_rel_gap": _GAP},
    )
    if found.x is None:
        return Tried(impossible=found.status == _INFEASIBLE)
    counts = {key: round(float(found.x[n])) for key, n in columns.items()}
    placed = tuple(sorted(Placed(*key, count) for key, count in counts.items() if count))
    packing = Packing(placed, method="by name")
    return Tried(None if violations(problem, packing) else packing)


def _rows(
    problem: Problem,
    pairs: Sequence[tuple[Item, Place, Vector]],
    columns: Mapping[tuple[str, str], int],
    opened: Mapping[str, int],
) -> Iterator[_Row]:
    """Counts, caps, and the room of each place, which is there only if the place is used."""
    for item in problem.items:
        own = [n for (name, _), n in columns.items() if name == item.name]
        yield own, [1.0] * len(own), item.replicas, item.replicas
        for cap, by in ((item.per_host, "host"), (item.per_zone, "zone")):
            groups: dict[str, list[int]] = {}
            for place in problem.places if cap is not None else ():
                if (item.name, place.name) in columns:
                    groups.setdefault(getattr(place, by), []).append(columns[item.name, place.name])
            for group in groups.values():
                yield group, [1.0] * len(group), 0.0, float(cap or 0)
    for place in problem.places:
        here = [(columns[item.name, place.name], need) for item, own, need in pairs if own is place]
        for side in (0, 1):
            weights = [float(need[side]) for _, need in here]
            yield (
                [*(n for n, _ in here), opened[place.name]],
                [*weights, -float(place.size[side])],
                -np.inf,
                0.0,
            )


def _constraint(rows: list[_Row], width: int) -> LinearConstraint:
    starts = np.cumsum([0, *(len(own) for own, _, _, _ in rows)])
    matrix = csr_array(
        (
            np.array([weight for _, weights, _, _ in rows for weight in weights]),
            np.array([n for own, _, _, _ in rows for n in own]),
            starts,
        ),
        shape=(len(rows), width),
    )
    return LinearConstraint(
        matrix,
        np.array([low for _, _, low, _ in rows], dtype=float),
        np.array([high for _, _, _, high in rows], dtype=float),
    )
