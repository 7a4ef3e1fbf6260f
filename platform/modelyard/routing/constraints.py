"""Which cells of a version a tenant's requests may go to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from modelyard.config.routes import Constraint, Route
from modelyard.config.table import Table
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Pool
from modelyard.routing.steering import UNSTEERED, Steering


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a resolution looks at beside the request: one reading of each."""

    table: Table
    fleet: Fleet
    steering: Steering = UNSTEERED


def open_pool(version: str, tenant: str, route: Route, around: Surroundings) -> Pool:
    """The cells of a version that may take a request of this tenant, by this route, now."""
    pool = around.fleet.pool(version)
    constraint = constraint_of(route, tenant)
    cells = pool.cells
    if constraint is not None and constraint.cell is not None:
        own = f"{version}--{constraint.cell}"
        cells = tuple(cell for cell in cells if cell.app == own)
    elif any("--" in cell.app for cell in cells):  # rare, and the only ones that can be dedicated
        taken = frozenset(_dedicated_to_others(version, tenant, around.table))
        cells = tuple(cell for cell in cells if cell.app not in taken)
    if around.steering.drained:
        cells = tuple(cell for cell in cells if cell.app not in around.steering.drained)
    return pool if cells == pool.cells else Pool(version, cells)


def constraint_of(route: Route, tenant: str) -> Constraint | None:
    """The first constraint that names the tenant, or names nobody and so means everybody."""
    for constraint in route.constraints:
        if constraint.tenants is None or tenant in constraint.tenants:
            return constraint
    return None


def _dedicated_to_others(version: str, tenant: str, table: Table) -> Iterator[str]:
    """Over all routes: another alias of the version is no way into somebody's own cell."""
    owners: dict[str, set[str]] = {}
    for route in table.routes.values():
        for one in route.constraints if version in route.versions() else ():
            if one.cell is not None:
                owners.setdefault(f"{version}--{one.cell}", set()).update(one.tenants or ())
    return (app for app, tenants in owners.items() if tenant not in tenants)
