"""What follows the death of a replica under a request: one retry, or an error that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from modelyard.admission.refused_digests import RefusedDigests
from modelyard.admission.retry_budget import RetryBudget
from modelyard.contract.errors import ReplicaFailed, RequestError
from modelyard.routing.fleet import Fleet

DIED: Final = "replica_died"
MAX_ATTEMPTS: Final = 2


class Attempts:
    """Retry policy of one ingress: at most one, before the first item, in a budget per version."""

    def __init__(self, fleet: Fleet, now: Callable[[], float]) -> None:
        self._fleet = fleet
        self._budgets: dict[str, RetryBudget] = {}
        self.refused = RefusedDigests(now)

    def begin(self, version: str, digest: Callable[[], str]) -> None:
        """Count a request. Raises ReplicaFailed for one that has killed two replicas already."""
        self._budget(version).request()
        if self.refused and digest() in self.refused:
            raise refusal()

    def after_death(
        self,
        error: RequestError,
        version: str,
        attempt: int,
        wait_s: float,
        digest: Callable[[], str],
    ) -> None:
        """Return when the request may be sent again; else raise what its caller is told.

        `wait_s` is how long the caller would still wait for a first item. Raises `error` itself
        when it is no death, ReplicaFailed otherwise.
        """
        if error.reason != DIED:
            raise error
        if attempt >= MAX_ATTEMPTS:
            # Whoever else was on the two replicas is refused with it: nobody can tell whose
            # request it was, and to send each again would cost a replica each time.
            self.refused.refuse(digest())
            raise refusal() from error
        load_s = self._fleet.load_s(version)
        # The board's reading may still hold the replica that has just died, hence "more than one".
        if self._fleet.ready_replicas(version) <= 1 and load_s > wait_s:
            raise ReplicaFailed(
                "the only replica died and another is not up in time",
                reason=DIED,
                retry_after_s=load_s,
            ) from error
        if not self._budget(version).retry():
            raise ReplicaFailed(
                "the replica died and too many requests are being retried",
                reason="retry_budget",
                retry_after_s=1,
            ) from error

    def _budget(self, version: str) -> RetryBudget:
        return self._budgets.setdefault(version, RetryBudget())


def refusal() -> ReplicaFailed:
    return ReplicaFailed(
        "two replicas died under this request: it is refused for ten minutes",
        reason="digest_refused",
        retryable=False,
    )
