"""The smaller version that answers what a route's queue would refuse."""

from __future__ import annotations

from dataclasses import replace

from modelyard.config.table import Table
from modelyard.contract.operations import Kind
from modelyard.routing.arms import STABLE
from modelyard.routing.constraints import Surroundings, open_pool
from modelyard.routing.fleet import Fleet
from modelyard.routing.resolve import Target
from modelyard.routing.steering import UNSTEERED, Steering
from modelyard.tenancy.callers import Caller


def fallback_of(
    target: Target, caller: Caller, table: Table, fleet: Fleet, steering: Steering = UNSTEERED
) -> Target | None:
    """`target` with its route's fallback in place of its version; None where it may not be used.

    Region and entitlement were checked for the alias, and hold for it as for the arms. Drained
    cells, and those of other tenants, are closed here too. An embedder's vectors are never
    another's. It belongs to no rollout: the answer says nothing about the arm that was drawn.
    """
    version, kind = target.route.overload.fallback, target.description.kind
    if version is None or version == target.version or "@" in target.alias:
        return None
    description = fleet.describe(version)
    if kind is Kind.EMBEDDER or description is None or description.kind is not kind:
        return None
    around = Surroundings(table, fleet, steering)
    pool = open_pool(version, caller.claim.tenant, target.route, around)
    if not pool.is_ready:
        return None
    return replace(
        target,
        version=version,
        arm=STABLE,
        rollout="",
        description=description,
        pool=pool,
        missing="",
        why="fallback",
    )
