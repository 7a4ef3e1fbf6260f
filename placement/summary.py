"""A plan in figures: what is used, what it costs, how near it is to the best possible."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from modelyard.config.fleet import FleetSpec
from placement.bounds import proved
from placement.free import Free, free_of
from placement.inventory import MILLIONTHS
from placement.money import HOURS_PER_MONTH, per_hour
from placement.plan import Plan


@dataclass(frozen=True, slots=True)
class Summary:
    """replicas: placed. used, places: of all places. in_use_per_hour: of the machines with a
    replica, all_per_hour: of every machine. price, bound: of the used places and of the best that
    there could be, per hour. gap: their difference over the bound, None for a bound of nothing."""

    replicas: int
    unplaced: tuple[tuple[str, int], ...]
    used: int
    places: int
    bound_places: int
    in_use_per_hour: float
    all_per_hour: float
    price: float
    bound: float
    gap: float | None
    proved: bool

    def as_record(self) -> dict[str, Any]:
        return {
            "replicas": self.replicas,
            "unplaced": dict(self.unplaced),
            "places_used": self.used,
            "places": self.places,
            "places_bound": self.bound_places,
            "in_use_per_hour": round(self.in_use_per_hour, 6),
            "in_use_per_month": round(self.in_use_per_hour * HOURS_PER_MONTH, 2),
            "all_per_hour": round(self.all_per_hour, 6),
            "all_per_month": round(self.all_per_hour * HOURS_PER_MONTH, 2),
            "places_per_hour": round(self.price, 6),
            "bound_per_hour": round(self.bound, 6),
            "gap": None if self.gap is None else round(self.gap, 6),
            "proved": self.proved,
        }


def summary_of(spec: FleetSpec, plan: Plan) -> Summary:
    used = [plan.problem.place[name] for name in plan.packing.used]
    price = sum(place.price for place in used)
    # Where all that is used is free there is no price to compare: then places are counted.
    ours, best = (price, plan.bound.price) if price else (len(used), plan.bound.places)
    best_found = proved(price, plan.bound) and (price > 0 or ours <= best)
    return Summary(
        replicas=sum(placed.replicas for placed in plan.packing.placed),
        unplaced=plan.packing.unplaced,
        used=len(used),
        places=len(plan.problem.places),
        bound_places=plan.bound.places,
        in_use_per_hour=per_hour(spec, {place.host for place in used}),
        all_per_hour=per_hour(spec, {place.host for place in plan.problem.places}),
        price=price / MILLIONTHS,
        bound=plan.bound.price / MILLIONTHS,
        gap=(ours - best) / best if best else None,
        proved=not plan.packing.unplaced and best_found,
    )


@dataclass(frozen=True, slots=True)
class Row:
    """Places of one pool that hold the same, the first of them, and how many."""

    free: Free
    names: tuple[str, ...]


def rows_of(plan: Plan) -> Mapping[str, tuple[Row, ...]]:
    """By pool, in the order of their places; alike ones in one row, so that a large fleet can be
    read."""
    rows: dict[str, tuple[Row, ...]] = {}
    everything = free_of(plan.problem, plan.packing)
    for pool, of_pool in groupby(everything, key=lambda one: one.place.pool):
        alike: dict[tuple[tuple[str, int], ...], list[Free]] = {}
        for one in of_pool:
            alike.setdefault(tuple((h.item, h.replicas) for h in one.held), []).append(one)
        rows[pool] = tuple(
            Row(group[0], tuple(one.place.name for one in group)) for group in alike.values()
        )
    return rows
