"""Resolution: from the alias a caller wrote to the version, arm and pool that answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.config.routes import Route
from modelyard.config.table import Table
from modelyard.contract.errors import Forbidden, InvalidRequest, NotFound, Overloaded
from modelyard.contract.operations import Operation, answers, routes_for
from modelyard.lifecycle.report import Description
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Pool
from modelyard.tenancy.authenticator import Caller

STABLE: Final = "stable"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes. `rollout` is the id of the rollout that chose the arm, or empty."""

    alias: str
    version: str
    arm: str
    rollout: str
    route: Route
    description: Description
    pool: Pool


def resolve(alias: str, operation: Operation, caller: Caller, table: Table, fleet: Fleet) -> Target:
    """The target of a request.

    Raises NotFound (no such alias), Forbidden (not entitled), InvalidRequest (wrong kind of model)
    and Overloaded (no replica is ready; Retry-After is the measured load time).
    """
    version, route = _version(alias, caller, table, fleet)
    description = fleet.describe(version)
    if description is not None and not answers(description.kind, operation):
        kind = description.kind
        article = "an" if kind.startswith(tuple("aeiou")) else "a"
        raise InvalidRequest(f"{alias} is {article} {kind}: use {routes_for(kind)}", param="model")
    pool = fleet.pool(version)
    if description is None or not pool.is_ready:
        raise not_loaded(alias, version, fleet)
    return Target(alias, version, STABLE, "", route, description, pool)


def not_loaded(alias: str, version: str, fleet: Fleet) -> Overloaded:
    """No replica is ready. Retry-After is the load time last measured."""
    return Overloaded(
        f"{alias} is not loaded: no replica of {version} is ready",
        reason="not_loaded",
        retry_after_s=fleet.load_s(version),
    )


def _version(alias: str, caller: Caller, table: Table, fleet: Fleet) -> tuple[str, Route]:
    """The version behind an alias, or the very version that an evaluator names."""
    if "@" in alias:
        return alias, _evaluated(alias, caller, table, fleet)
    route = table.routes.get(alias)
    if route is None:
        raise _unknown(alias)
    if not _entitled(alias, caller):
        raise _not_entitled(alias, caller)
    return route.stable, route


def _evaluated(version: str, caller: Caller, table: Table, fleet: Fleet) -> Route:
    """The route of a version named outright: an alias's own, or the defaults for one without."""
    if "evaluate" not in caller.roles:
        raise Forbidden(
            "only a key with the role evaluate may name a version: use the alias",
            param="model",
            reason="role",
        )
    aliases = [alias for alias, route in table.routes.items() if route.stable == version]
    if not aliases and fleet.describe(version) is None:
        raise _unknown(version)
    if not aliases:
        return Route(stable=version)
    # One's own alias decides, not the first of the file: its limits are what the caller is owed.
    for alias in aliases:
        if _entitled(alias, caller):
            return table.routes[alias]
    raise _not_entitled(version, caller)


def _unknown(name: str) -> NotFound:
    return NotFound(
        f"there is no model {name!r}: GET /v1/models lists yours",
        param="model",
        wire_code="model_not_found",
    )


def _not_entitled(name: str, caller: Caller) -> Forbidden:
    return Forbidden(
        f"the tenant {caller.claim.tenant} may not use {name!r}",
        param="model",
        reason="entitlement",
    )


def _entitled(alias: str, caller: Caller) -> bool:
    return "*" in caller.claim.models or alias in caller.claim.models


def visible_aliases(caller: Caller, table: Table) -> tuple[str, ...]:
    """The aliases a caller may use, in the table's order."""
    return tuple(alias for alias in table.routes if _entitled(alias, caller))
