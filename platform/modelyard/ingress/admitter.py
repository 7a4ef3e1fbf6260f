"""How a request is let in: its quota, then a slot of its model, or of a smaller one."""

from __future__ import annotations

from modelyard.config.table import Table
from modelyard.contract.errors import Overloaded
from modelyard.ingress.attempts import Attempts
from modelyard.ingress.degrader import Degrader
from modelyard.ingress.demand import Demand
from modelyard.ingress.metering import Metering
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.preparer import Preparer
from modelyard.ingress.router import Router
from modelyard.ingress.turnstile import Recalled, Turnstile


class Admitter:
    """One per ingress process."""

    def __init__(
        self,
        metering: Metering,
        turnstile: Turnstile,
        attempts: Attempts,
        router: Router,
        preparer: Preparer,
        demand: Demand,
    ) -> None:
        self._metering = metering
        self._turnstile = turnstile
        self._attempts = attempts
        self._router = router
        self._preparer = preparer
        self._demand = demand
        self._degrader = Degrader(router, preparer, demand)

    async def let_in(self, prepared: Prepared, table: Table) -> None:
        """Return with quota and a slot; quota first, which a request keeps while it waits.

        Raises RateLimited, InvalidRequest for what the quota could never grant, Overloaded, and
        DeadlineExceeded for what was too late before it came here.
        """
        await self._metering.reserve(prepared)
        try:
            await self._enter(prepared, table)
        except BaseException:
            prepared.record.degraded = ""  # it got nothing, not less
            raise

    async def _enter(self, prepared: Prepared, table: Table) -> None:
        self._degrader.ease(prepared, self._turnstile.pressure(prepared), table)
        try:
            await self._queue(prepared, table)
        except Overloaded as error:
            if (away := self._router.away(prepared)) is not None:
                raise away from error
            if not self._degrader.fall_back(prepared, table):
                raise
            self._attempts.begin(prepared.target.version, prepared.digest)
            await self._turnstile.enter(prepared)

    async def _queue(self, prepared: Prepared, table: Table) -> None:
        """Or in the queue of the stable version, once a rollback has closed the canary's."""
        try:
            await self._turnstile.enter(prepared)
        except Recalled:
            self.recall(prepared, table)
            await self._turnstile.enter(prepared)

    def recall(self, prepared: Prepared, table: Table) -> None:
        """Send a request, which has not started, elsewhere than to an arm that was rolled back."""
        before = prepared.target.version
        self._preparer.recall(prepared, table)
        self._demand.moved(before, prepared.target.version)
        self._attempts.begin(prepared.target.version, prepared.digest)
