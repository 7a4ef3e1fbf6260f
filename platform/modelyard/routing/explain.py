"""Why a request goes where it goes: resolution and choice of a cell, in words and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from modelyard.config.table import Table
from modelyard.contract.errors import RequestError
from modelyard.contract.operations import Operation
from modelyard.routing.affinity import affinity_key
from modelyard.routing.cells import InFlight, candidate_of, pick_cell
from modelyard.routing.choose import weighted_hash
from modelyard.routing.fleet import Fleet
from modelyard.routing.resolve import Target, resolve
from modelyard.routing.steering import Steering
from modelyard.routing.trail import Step, Trail
from modelyard.tenancy.authenticator import Caller


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps in order; the last one is `cell`, or `refused` with the error's code."""

    steps: tuple[Step, ...]

    @property
    def lines(self) -> list[str]:
        width = max(len(step.name) for step in self.steps)
        return [f"{step.name:<{width}}  {step.words}" for step in self.steps]

    def record(self) -> list[dict[str, Any]]:
        """Plain data, for JSON."""
        return [asdict(step) for step in self.steps]


def explain(
    alias: str,
    operation: Operation,
    caller: Caller,
    table: Table,
    fleet: Fleet,
    steering: Steering,
    in_flight: InFlight,
    *,
    key: str,
    nonce: str,
) -> Explanation:
    """What would become of a request now, of the conversation `key` ("" for none).

    Without a body: a system prompt long enough to be the affinity key of its own is not there.
    Never raises RequestError: a refusal is the last step.
    """
    trail = Trail()
    try:
        target = resolve(
            alias, operation, caller, table, fleet, steering, key=key, nonce=nonce, trail=trail
        )
    except RequestError as error:
        trail.add("refused", error.message, status=error.status, reason=error.reason)
    else:
        affinity = affinity_key(operation, {}, target.version, caller.claim.tenant, key)
        tell_cell(trail, target, affinity, fleet, in_flight)
    return Explanation(tuple(trail.steps))


def tell_cell(
    trail: Trail, target: Target, affinity: str, fleet: Fleet, in_flight: InFlight
) -> None:
    """Adds the cell that would be chosen, what is known of each, and the key's replica in it."""
    # Without a key two are drawn: a fixed draw here is one of the possible answers.
    cell = pick_cell(target.pool, affinity, fleet, in_flight, Random(0))
    known = {}
    for one in target.pool.cells:
        candidate = candidate_of(one, fleet, in_flight)
        known[one.app] = {
            "ready": fleet.state(one.app).ready,
            "load": candidate.load,
            "age_s": round(candidate.age_s, 1),
        }
    replicas = fleet.state(cell.app).replicas
    preferred = None
    if affinity and replicas:
        # All replicas of a cell have one limit, so the weight does not matter.
        preferred = max(replicas, key=lambda replica: weighted_hash(affinity, replica, 1))
    where = f", replica {preferred} unless it is too busy" if preferred else ""
    trail.add(
        "cell",
        f"{cell.app}, {known[cell.app]['ready']} ready, {known[cell.app]['load']} in it{where}",
        cell=cell.app,
        cells=known,
        affinity=affinity or None,
        replica=preferred,
    )
