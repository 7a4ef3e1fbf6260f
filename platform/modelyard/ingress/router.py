"""Where this ingress sends a request: resolution under control's word, then a cell."""

from __future__ import annotations

import random
from typing import Final

from modelyard.config.table import Table
from modelyard.contract.envelope import Failure
from modelyard.contract.operations import Operation
from modelyard.control.in_force import InForce
from modelyard.ingress.demand import Demand
from modelyard.ingress.prepared import Prepared
from modelyard.routing.arms import CANARY, may_use_canary
from modelyard.routing.cells import InFlight, pick_cell
from modelyard.routing.explain import tell_cell
from modelyard.routing.fallback import fallback_of
from modelyard.routing.fleet import Fleet
from modelyard.routing.other_arm import other_arm
from modelyard.routing.pins import FIRST_TURN, Turn
from modelyard.routing.pool import Cell
from modelyard.routing.resolve import NotLoaded, Target, not_loaded, resolve
from modelyard.routing.steering import Steering
from modelyard.routing.trail import Trail
from modelyard.tenancy.callers import Caller

WISH_LOAD_TIMES: Final = 2  # how long a wish holds, in times that the load should take


class Router:
    """One per ingress process."""

    def __init__(self, fleet: Fleet, in_force: InForce, demand: Demand, rng: random.Random) -> None:
        self._fleet = fleet
        self._in_force = in_force
        self._demand = demand
        self._rng = rng
        self.in_flight = InFlight()

    @property
    def steering(self) -> Steering:
        return self._in_force.steering

    def target(
        self,
        alias: str,
        operation: Operation,
        caller: Caller,
        table: Table,
        conversation: str,
        trail: Trail | None = None,
        turn: Turn = FIRST_TURN,
    ) -> Target:
        """What `resolve` says. A version that should answer and has no replica is wished for."""
        try:
            target = resolve(
                alias,
                operation,
                caller,
                table,
                self._fleet,
                self.steering,
                key=conversation,
                nonce="" if conversation else f"{self._rng.getrandbits(64):x}",
                turn=turn,
                trail=trail,
            )
        except NotLoaded as error:
            self.wish(error.version)
            raise
        if target.missing:
            self.wish(target.missing)
        return target

    def wish(self, version: str) -> None:
        expected_s = max(self._fleet.load_s(version), self.steering.loads.get(version, 0.0))
        self._demand.wish(version, WISH_LOAD_TIMES * expected_s)

    def other(
        self, target: Target, failure: Failure, caller: Caller, table: Table
    ) -> Target | None:
        """The other arm, when it alone has what `target` lacks."""
        return other_arm(target, failure, caller, table, self._fleet, self.steering)

    def away(self, prepared: Prepared) -> NotLoaded | None:
        """That the model has no replica, if so; one is then wished for."""
        version = prepared.target.version
        if self._fleet.pool(version).is_ready:
            return None
        self.wish(version)
        return not_loaded(prepared.target.alias, version, self._fleet, self.steering)

    def fallback(self, prepared: Prepared, table: Table) -> Target | None:
        """Where a request goes that its own version has no room for."""
        return fallback_of(prepared.target, prepared.caller, table, self._fleet, self.steering)

    def is_closed(self, prepared: Prepared) -> bool:
        """Whether its arm was rolled back since it was chosen: what has not started goes elsewhere.
        A version that was named outright stays what was asked for."""
        target, claim = prepared.target, prepared.caller.claim
        if target.arm != CANARY or "@" in target.alias:
            return False
        return not may_use_canary(target.route, claim.tenant, claim.arms, self.steering)

    def tell_cell(self, trail: Trail, prepared: Prepared) -> None:
        """The step of a trail that says which cell would take the request."""
        tell_cell(trail, prepared.target, prepared.envelope.affinity, self._fleet, self.in_flight)

    def cell(self, prepared: Prepared) -> Cell:
        """The cell of the next attempt: another than before, where there is another. Inside a cell
        Serve itself keeps away from a replica that died."""
        cell = pick_cell(
            prepared.target.pool,
            prepared.envelope.affinity,
            self._fleet,
            self.in_flight,
            self._rng,
            prepared.tried,
        )
        prepared.tried.append(cell)
        return cell
