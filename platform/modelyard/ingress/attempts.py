"""What follows the death of a replica under a request: one retry, or an error that says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from modelyard.admission.retry_budget import RetryBudget
from modelyard.admission.suspects import Suspects
from modelyard.contract.errors import ReplicaDied, ReplicaFailed
from modelyard.routing.fleet import Fleet

MAX_ATTEMPTS: Final = 2


class Attempts:
    """Retry policy of one ingress: at most one, before the first item, in a budget per version."""

    def __init__(self, fleet: Fleet, now: Callable[[], float]) -> None:
        self._fleet = fleet
        self._budgets: dict[str, RetryBudget] = {}
        self.suspects = Suspects(now)

    def begin(self, version: str, digest: Callable[[], str]) -> None:
        """Count a request. Raises ReplicaFailed for one that is refused for what died under it."""
        self._budget(version).request()
        if self.suspects and self.suspects.refuses(digest()):
            raise refusal()

    def after_death(
        self, error: ReplicaDied, version: str, attempt: int, wait_s: float | None, digest: str
    ) -> None:
        """Return when the request may be sent again; else raise what its caller is told.

        `wait_s` is how long the caller would still wait for a first item, None when it has had one.
        Raises ReplicaFailed.
        """
        self.suspects.died(error.replica, digest)
        if self.suspects.refuses(digest):
            raise refusal() from error
        if wait_s is None or attempt >= MAX_ATTEMPTS:
            raise error
        load_s = self._fleet.load_s(version)
        # The board's reading may still hold the replica that has just died, hence "more than one".
        if self._fleet.ready_replicas(version) <= 1 and load_s > wait_s:
            raise ReplicaFailed(
                "the only replica died and another is not up in time",
                reason=error.reason,
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
        "replicas died under this request more than once: it is refused for ten minutes",
        reason="digest_refused",
        retryable=False,
    )
