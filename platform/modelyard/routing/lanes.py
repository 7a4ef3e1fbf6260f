"""Lanes: the requests that compete for the same slots, and the slots that they compete for.

A version is one lane. A cell that some tenants have to themselves is a lane of its own, named as
its app is: they must not wait behind requests that may never go there.
"""

from __future__ import annotations

from modelyard.config.routes import Route
from modelyard.config.table import Table
from modelyard.routing.constraints import constraint_of
from modelyard.routing.fleet import Fleet, version_of


def lane_of(version: str, tenant: str, route: Route) -> str:
    """The lane of a tenant's requests for a version by this route."""
    constraint = constraint_of(route, tenant)
    if constraint is None or constraint.cell is None:
        return version
    return f"{version}--{constraint.cell}"


def slots_of(lane: str, dedicated: frozenset[str], fleet: Fleet) -> int:
    """Requests that the ready replicas of a lane take at once. dedicated: `dedicated_cells`."""
    version = version_of(lane)
    if lane != version:
        return fleet.state(lane).slots
    cells = fleet.pool(version).cells
    return sum(fleet.state(cell.app).slots for cell in cells if cell.app not in dedicated)


def dedicated_cells(table: Table) -> frozenset[str]:
    """The apps of cells that belong to some tenants."""
    return frozenset(
        f"{version}--{one.cell}"
        for route in table.routes.values()
        for one in route.constraints
        if one.cell is not None
        for version in route.versions()
    )
