"""Resolution: from the alias a caller wrote to the version, arm and pool that answer.

In order: residency, entitlement, arm, the constraint of the caller's tenant, readiness. A pool that
cannot answer falls back, canary to stable and stable to the constraint's failover, and never from
one kind of model to another. Pure: what control and the board last said is passed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from modelyard.config.frozen import Arm
from modelyard.config.routes import Route
from modelyard.config.table import Table
from modelyard.contract.errors import Forbidden, InvalidRequest, NotFound, Overloaded
from modelyard.contract.operations import KIND_OF, Kind, Operation, answers, routes_for
from modelyard.lifecycle.report import Description
from modelyard.routing.arms import CANARY, STABLE, ArmChoice, choose_arm
from modelyard.routing.constraints import Surroundings, constraint_of, open_pool
from modelyard.routing.fleet import Fleet
from modelyard.routing.pins import FIRST_TURN, Turn
from modelyard.routing.pool import Pool
from modelyard.routing.steering import UNSTEERED, Steering
from modelyard.routing.trail import Trail
from modelyard.tenancy.authenticator import Caller

DRAINED_RETRY_S: Final = 30.0


class NotLoaded(Overloaded):
    """No replica of `version` is ready: the ingress posts a wish for one."""

    def __init__(self, message: str, version: str, retry_after_s: float) -> None:
        super().__init__(message, reason="not_loaded", retry_after_s=retry_after_s)
        self.version = version


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes.

    `rollout`: the id of the rollout whose draw chose the arm, else empty. `missing`: the version
    that should have answered but has no replica, which a wish may bring back. `required`: the other
    arm could not give this answer, so this one was no choice. `why`: this arm, in a word; empty
    where there was no choice. `pin_ignored`: as in ArmChoice.
    """

    alias: str
    version: str
    arm: Arm
    rollout: str
    route: Route
    description: Description
    pool: Pool
    missing: str = ""
    required: bool = False
    why: str = ""
    pin_ignored: str = ""


def resolve(
    alias: str,
    operation: Operation,
    caller: Caller,
    table: Table,
    fleet: Fleet,
    steering: Steering = UNSTEERED,
    *,
    key: str = "",
    nonce: str = "",
    turn: Turn = FIRST_TURN,
    trail: Trail | None = None,
) -> Target:
    """The target of a request. `key`, `nonce` and `turn` as in arms.choose_arm; `trail` takes the
    steps.

    Raises NotFound (no such alias), Forbidden (not entitled, or the tenant's data must stay in
    another region), InvalidRequest (wrong kind of model), NotLoaded (no replica is ready;
    Retry-After is the time that it should take) and Overloaded (drained).
    """
    around = Surroundings(table, fleet, steering)
    _within_region(caller, table, trail)
    if "@" in alias:
        route = _evaluated(alias, caller, table, fleet)
        choice = ArmChoice(CANARY if alias == route.canary else STABLE, "named")
        order = [alias]
    else:
        route = _route(alias, caller, table)
        claim = caller.claim
        choice = choose_arm(
            route,
            claim.tenant,
            claim.arms,
            steering,
            key,
            nonce,
            turn,
            may_split=_may_split(route, operation, fleet),
        )
        order = _order(route, choice.arm, operation, claim.tenant)
    if trail is not None:
        trail.alias(alias, route)
        trail.arm(choice, order[0])
        trail.constraint(constraint_of(route, caller.claim.tenant))
    return _first_ready(alias, operation, caller, around, route, choice, order, trail)


def _first_ready(
    alias: str,
    operation: Operation,
    caller: Caller,
    around: Surroundings,
    route: Route,
    choice: ArmChoice,
    order: list[str],
    trail: Trail | None,
) -> Target:
    """The target with the first version of `order` that can answer."""
    fleet, tenant = around.fleet, caller.claim.tenant
    _require_kind(alias, operation, fleet.describe(route.stable) or fleet.describe(order[0]))
    for version in order:
        description = fleet.describe(version)
        pool = open_pool(version, tenant, route, around)
        fits = description is not None and answers(description.kind, operation)
        if trail is not None:
            trail.pool(version, fleet.pool(version), pool, fits=fits)
        if description is None or not fits or not pool.is_ready:
            continue
        first = version == order[0]
        arm = choice.arm if first else STABLE
        # A draw that was not followed says nothing about the arm that answered instead.
        rollout = choice.rollout if first else ""
        missing = "" if first else order[0]
        why = choice.why if first else "failover"
        return Target(
            alias,
            version,
            arm,
            rollout,
            route,
            description,
            pool,
            missing,
            why=_told(why),
            pin_ignored=choice.pin_ignored,
        )
    wanted = route.stable if route.stable in order else order[0]
    # As if no operator had drained anything. What makes room for another model is not loaded.
    undrained = replace(around, steering=Steering(drained=around.steering.unloading))
    if open_pool(wanted, tenant, route, undrained).is_ready:
        raise Overloaded(
            f"{alias} is drained by an operator: try again later",
            reason="drained",
            retry_after_s=DRAINED_RETRY_S,
        )
    raise not_loaded(alias, wanted, fleet, around.steering)


def _may_split(route: Route, operation: Operation, fleet: Fleet) -> bool:
    """Vectors of two models cannot be compared: a split would break every index built of them,
    unless both say that they are of one space."""
    if KIND_OF[operation] is not Kind.EMBEDDER or route.canary is None:
        return True
    stable, canary = fleet.describe(route.stable), fleet.describe(route.canary)
    if stable is None or canary is None or stable.embedding_space is None:
        return False
    return stable.embedding_space == canary.embedding_space


def _told(why: str) -> str:
    """Nothing of the usual case, which would be on every line of the log."""
    return "" if why == "no_rollout" else why


def not_loaded(alias: str, version: str, fleet: Fleet, steering: Steering) -> NotLoaded:
    """No replica is ready. Retry-After is as control expects, else the load time last measured."""
    return NotLoaded(
        f"{alias} is not loaded: no replica of {version} is ready",
        version,
        expected_load_s(version, fleet, steering),
    )


def expected_load_s(version: str, fleet: Fleet, steering: Steering) -> float:
    """Seconds until it should answer: control's word counts the wait for memory too."""
    return steering.loads.get(version, fleet.load_s(version))


def _order(route: Route, arm: Arm, operation: Operation, tenant: str) -> list[str]:
    """The versions that may answer, best first."""
    order = [route.canary] if arm == CANARY and route.canary is not None else []
    order.append(route.stable)
    constraint = constraint_of(route, tenant)
    if operation is Operation.EMBED or constraint is None or constraint.failover is None:
        return order
    # A canary is nobody's failover: it may have been rolled back.
    if constraint.failover not in (route.canary, *order):
        order.append(constraint.failover)
    return order


def _within_region(caller: Caller, table: Table, trail: Trail | None) -> None:
    """One cluster is one region, so this one check holds for arms, failover and retries alike. A
    tenant without a region has left it open."""
    region = caller.claim.region
    if region and region != table.region:
        raise Forbidden(
            f"the data of the tenant {caller.claim.tenant} stays in {region}, and this is "
            f"{table.region}: call the modelyard of {region}",
            reason="residency",
        )
    if trail is not None:
        trail.region(region)


def _require_kind(alias: str, operation: Operation, description: Description | None) -> None:
    if description is not None and not answers(description.kind, operation):
        kind = description.kind
        article = "an" if kind.startswith(tuple("aeiou")) else "a"
        raise InvalidRequest(f"{alias} is {article} {kind}: use {routes_for(kind)}", param="model")


def _route(alias: str, caller: Caller, table: Table) -> Route:
    route = table.routes.get(alias)
    if route is None:
        raise _unknown(alias)
    if not _entitled(alias, caller):
        raise _not_entitled(alias, caller)
    return route


def _evaluated(version: str, caller: Caller, table: Table, fleet: Fleet) -> Route:
    """The route of a version named outright: an alias's own, or the defaults for one without."""
    if "evaluate" not in caller.roles:
        raise Forbidden(
            "only a key with the role evaluate may name a version: use the alias",
            param="model",
            reason="role",
        )
    aliases = [alias for alias, route in table.routes.items() if version in route.versions()]
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
