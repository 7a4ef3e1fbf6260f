"""What a client does when it is refused: the three kinds that a storm experiment compares."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final

from modelyard.admission.outcome import QUEUE_FULL
from modelyard.admission.retry_policy import RetryPolicy
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.contract.errors import Overloaded, RateLimited, ReplicaFailed, RequestError

# As many calls as the platform's client has under way by default: the reserve of its budget.
CLIENT_PLACES: Final = 16
# The platform's words for a model that is not there: an outage to its client, and no overload.
NOT_THERE: Final = ("not_loaded", "starting", "drained")
_QUOTA: Final = ("429", "rate_limited", "rate_limit_exceeded")


class RetryKind(StrEnum):
    NONE = "none"
    IMMEDIATE = "immediate"
    OBEY = "obey"


class Retry:
    """One client. max_attempts counts the first one too.

    obey: the policy and the budget of the platform's own client, one budget for the whole run as
    one process has it. Only its places are left out: they would close the open loop.
    """

    def __init__(self, kind: RetryKind = RetryKind.NONE, max_attempts: int = 4) -> None:
        self._kind = kind
        self._policy = RetryPolicy(max_attempts)
        self._budget = self._policy.budget(CLIENT_PLACES)

    def request(self) -> None:
        """Count one request, not its retries."""
        self._budget.request()

    def pause_s(self, outcome: Outcome, attempt: int, draw: float) -> float | None:
        """Seconds before the next attempt, None for no other. attempt: from 1. draw: in [0, 1)."""
        over = outcome.verdict in (Verdict.COMPLETED, Verdict.UNFINISHED)
        if self._kind is RetryKind.NONE or over or not outcome.retryable:
            return None
        if self._kind is RetryKind.IMMEDIATE:
            return 0.0 if attempt < self._policy.max_attempts else None
        error = _error(outcome)
        # Whoever calls has no deadline beside that of each attempt.
        pause_s = self._policy.pause_s(error, attempt, math.inf, draw)
        return pause_s if pause_s is not None and self._budget.retry(error) else None


def _error(outcome: Outcome) -> RequestError:
    """What the platform's client would have raised for it: its budget goes by the cause."""
    wait_s = outcome.retry_after_s
    if outcome.code in _QUOTA:
        return RateLimited("refused", retry_after_s=wait_s)
    if outcome.verdict is Verdict.REJECTED:
        # A peer has words of its own, and a refusal without one of ours is taken for overload.
        reason = outcome.reason if outcome.reason in NOT_THERE else QUEUE_FULL
        return Overloaded("refused", reason=reason, retry_after_s=wait_s)
    return ReplicaFailed("failed", retry_after_s=wait_s)
