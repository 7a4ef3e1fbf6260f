"""What no packing can be below, and why that is certain.

Three arguments; the largest holds. All are made of integers: the duals of the linear relaxation are
rounded, and an exact knapsack shows that no place is worth more than its price at them, so weak
duality gives the bound whatever the solver's tolerances were (see `columns`).
"""

from __future__ import annotations

from collections.abc import Sequence

from placement import prices
from placement.columns import relaxation
from placement.components import Component, components
from placement.grouped import Grouped, Kind, Type, grouped
from placement.problem import Bound, Problem
from placement.sums import least_price

_PROOF = (
    "Duals of the linear relaxation as integers; no content of any kind of place is worth more "
    "than its price at them, by an exact knapsack; rounded up to a sum of prices"
)


def bound(problem: Problem, *, exact: bool = True) -> Bound:
    """For all replicas that fit some place, with as many places of each kind as one likes. exact:
    with the linear relaxation (up to seconds); else the sum and the spread alone."""
    groups = grouped(problem, by_zone=False)
    price, by = _total(problem, groups, groups.kinds, exact=exact)
    ones = tuple(kind._replace(price=1) for kind in groups.kinds)
    places, _ = _total(problem, groups, ones, exact=exact)
    return Bound(price, places, by, _PROOF if exact else "Sums and caps, in whole numbers")


def proved(reached: int, least: Bound) -> bool:
    """No packing has a lower price than this one."""
    return reached <= least.price


def _total(
    problem: Problem, groups: Grouped, kinds: Sequence[Kind], *, exact: bool
) -> tuple[int, dict[str, int]]:
    """The sum over parts that have nothing to do with each other."""
    total = 0
    by: dict[str, int] = {}
    for part in components(kinds, groups.types):
        own_kinds, types = part.of(kinds, groups.types)
        own = {"spread": _spread(problem, groups, kinds, part)}
        # What may be on a place that costs nothing may cost nothing.
        paying, priced = _without_free(own_kinds, types)
        if priced:
            own["sum"] = least_price(paying, priced)
            if exact:
                own["lp"] = relaxation(paying, priced, up=False, limited=False).bound
        allowed = [kind.price for kind in paying]
        rounded = {name: prices.round_up(value, allowed) for name, value in own.items()}
        total += max(rounded.values())
        for name, value in rounded.items():
            by[name] = by.get(name, 0) + value
    return total, by


def _without_free(
    kinds: Sequence[Kind], types: Sequence[Type]
) -> tuple[tuple[Kind, ...], tuple[Type, ...]]:
    paying = [index for index, kind in enumerate(kinds) if kind.price > 0]
    free = [index for index, kind in enumerate(kinds) if kind.price <= 0]
    return tuple(kinds[index] for index in paying), tuple(
        type_._replace(needs=tuple(type_.needs[index] for index in paying))
        for type_ in types
        if all(type_.needs[index] is None for index in free)
    )


def _spread(problem: Problem, groups: Grouped, kinds: Sequence[Kind], component: Component) -> int:
    """A cap of m replicas on a host, or in a zone, makes r of them use r / m places at least."""
    most = 0
    for type_ in component.types:
        needs = groups.types[type_].needs
        price = min(kind.price for kind, need in zip(kinds, needs, strict=True) if need is not None)
        for part in groups.parts[type_]:
            item = problem.item[part.item]
            caps = [cap for cap in (item.per_host, item.per_zone) if cap]
            most = max([most, *(-(-part.replicas // cap) * price for cap in caps)])
    return most
