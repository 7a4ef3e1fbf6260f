"""A feature that only the other arm has: a longer context, a larger output, what one refuses."""

from __future__ import annotations

from dataclasses import replace

from modelyard.config.table import Table
from modelyard.contract.errors import Failure
from modelyard.contract.operations import Kind
from modelyard.lifecycle.report import Description
from modelyard.routing.arms import CANARY, STABLE, may_use_canary
from modelyard.routing.constraints import Surroundings, open_pool
from modelyard.routing.fleet import Fleet
from modelyard.routing.resolve import Target
from modelyard.routing.steering import UNSTEERED, Steering
from modelyard.tenancy.authenticator import Caller


def other_arm(
    target: Target,
    failure: Failure,
    caller: Caller,
    table: Table,
    fleet: Fleet,
    steering: Steering = UNSTEERED,
) -> Target | None:
    """Where a request goes that `target` refused for want of a feature; None when nowhere.

    Only what a replica says before any engine work, and at most once a request: a context or an
    output longer than the arm's own, which the other must have, or something it does not support.
    An embedder's vectors are never another's.
    """
    route, kind, claim = target.route, target.description.kind, caller.claim
    if target.required or kind is Kind.EMBEDDER or "@" in target.alias:
        return None
    version = route.stable if target.arm == CANARY else route.canary
    if version is None or version == target.version:
        return None
    arm = STABLE if version == route.stable else CANARY
    if arm == CANARY and not may_use_canary(route, claim.tenant, claim.arms, steering):
        return None
    description = fleet.describe(version)
    pool = open_pool(version, claim.tenant, route, Surroundings(table, fleet, steering))
    if description is None or description.kind is not kind or not pool.is_ready:
        return None
    if not _gives_more(failure, target.description, description):
        return None
    return replace(
        target,
        version=version,
        arm=arm,
        rollout="",
        description=description,
        pool=pool,
        missing="",
        required=True,
        why="required",
    )


def _gives_more(failure: Failure, here: Description, there: Description) -> bool:
    if failure.wire_code == "context_length_exceeded":
        return there.max_context_tokens > here.max_context_tokens
    if failure.reason == "output_limit":
        ours = here.max_output_tokens or here.max_context_tokens
        return (there.max_output_tokens or there.max_context_tokens) > ours
    return failure.wire_code == "unsupported"
