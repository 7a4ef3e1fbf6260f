"""Whether an override could mean anything: a target that is there, and a value of its kind."""

from __future__ import annotations

from typing import Final

from modelyard.config.quotas import Limits
from modelyard.config.table import Table
from modelyard.contract.errors import InvalidRequest, NotFound
from modelyard.control.arguments import AddOverride
from modelyard.control.published import EVERYTHING, OF_REPLICA, OF_ROLLOUT, RouteLimit, route_limit
from modelyard.control.rollout_states import planned_in
from modelyard.quota.figures import SMALL

# Of RouteLimits. Output caps are promised to callers: they change with the file, for all at once.
ROUTE_LIMITS: Final = ("max_queued_requests", "max_queued_tokens")


def check_override(args: AddOverride, table: Table | None) -> None:
    """Raises InvalidRequest or NotFound for an override that could not mean anything."""
    needs_value = args.kind in ("limit", "floor", "ceiling")
    if needs_value and args.value is None:
        raise InvalidRequest(f"a {args.kind} needs a value", param="value")
    if not needs_value and args.value is not None:
        raise InvalidRequest(f"a {args.kind} takes no value: remove it", param="value")
    if args.value is not None and args.value != int(args.value):
        raise InvalidRequest("value must be a whole number", param="value")
    if args.kind == "limit":
        route = route_limit(args.target)
        if route is None:
            _check_tenant_limit(args.target, table)
        else:
            _check_route_limit(route, args, table)
    elif args.kind == "drain" and args.target.startswith(OF_REPLICA):
        if args.target == OF_REPLICA:
            raise InvalidRequest(f"target must name a replica: {OF_REPLICA}<id>", param="target")
    elif args.kind == "freeze" and args.target.startswith(OF_ROLLOUT):
        _check_rollout(args.target.removeprefix(OF_ROLLOUT), table)
    elif args.kind == "freeze" and args.target == EVERYTHING:
        return
    elif "@" not in args.target:
        raise InvalidRequest("target must be a name@version", param="target")


def _check_rollout(rollout: str, table: Table | None) -> None:
    if table is not None:
        require_known(rollout, set(planned_in(table)), "rollout", "target", "routes")


def _check_tenant_limit(target: str, table: Table | None) -> None:
    tenant, _, field = target.partition("/")
    if field.removeprefix(SMALL) not in Limits.model_fields:
        raise InvalidRequest(
            f"target must be tenant/field, field one of {', '.join(Limits.model_fields)}, or "
            f"route:alias/field, field one of {', '.join(ROUTE_LIMITS)}",
            param="target",
        )
    if table is not None:
        require_known(tenant, set(table.tenants), "tenant", "target", "tenants")


def _check_route_limit(route: RouteLimit, args: AddOverride, table: Table | None) -> None:
    """The shed point stays above the scaling point whatever the value: what may run is above it
    already, or `modelyard check` would have refused the file."""
    if not route.alias or route.field not in ROUTE_LIMITS:
        raise InvalidRequest(
            f"target must be route:alias/field, field one of {', '.join(ROUTE_LIMITS)}",
            param="target",
        )
    if table is not None:
        require_known(route.alias, set(table.routes), "route", "target", "routes")
    if args.value is not None and args.value < 1:
        raise InvalidRequest(
            "value must be at least 1: to stop requests, drain the apps of the version",
            param="value",
        )


def require_known(name: str, known: set[str], what: str, param: str, where: str) -> None:
    if name not in known:
        raise NotFound(
            f"the table has no {what} {name!r}: look under `{where}`",
            param=param,
            reason=f"no_{what}",
        )
