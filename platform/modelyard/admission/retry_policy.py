"""When a client sends a request again, and how long it waits first."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.admission.outcome import MESSAGES
from modelyard.admission.retry_budget import RetryBudget
from modelyard.contract.errors import ConfigError, Overloaded, RateLimited, RequestError


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with full jitter: uniform in [0, min(cap_s, base_s * 2**n)].

    max_attempts counts the first one too: 1 never retries.
    """

    max_attempts: int = 5
    base_s: float = 0.2
    cap_s: float = 10.0

    def __post_init__(self) -> None:
        if self.max_attempts < 1 or self.base_s < 0 or self.cap_s < 0:
            raise ConfigError(f"{self}: max_attempts is at least 1, base_s and cap_s at least 0")

    def pause_s(
        self, error: RequestError, attempt: int, left_s: float, draw: float
    ) -> float | None:
        """Seconds to wait after `attempt` (from 1) failed, or None: the error is final.

        left_s: what is left of the caller's deadline. draw: a random number in [0, 1).
        """
        if not error.retryable or attempt >= self.max_attempts:
            return None
        backoff_s = min(self.cap_s, self.base_s * 2 ** (attempt - 1))
        # Added to Retry-After and not the larger of the two: those who were refused together would
        # come back together.
        pause_s = (error.retry_after_s or 0.0) + draw * backoff_s
        return pause_s if pause_s < left_s else None

    def rest_s(self, error: RequestError) -> float:
        """How long the place of a call that ends with `error` is left empty.

        A job that was refused would otherwise send its next row at once, and the one after that:
        hundreds a second, where the model is overloaded already. At most cap_s, since the places
        serve other models too.
        """
        return min(self.cap_s, error.retry_after_s or 0.0) if _was_shed(error) else 0.0

    def budget(self, places: int) -> ClientBudget:
        """For a client that has up to `places` calls under way at once."""
        return ClientBudget(float(places * (self.max_attempts - 1)))


class ClientBudget:
    """Which retries a client may send: two budgets, by what went wrong.

    An outage: the calls under way may use up their attempts (`reserve`), so that one that is
    shorter than the deadline costs no row; what comes after them must earn its retries. Overload:
    only what was earned. Forty clients that spend a reserve of 64 each, because the model is
    overloaded, double its load for two minutes (modelyard.simulate.storm).
    """

    def __init__(self, reserve: float) -> None:
        self._outage = RetryBudget(reserve=reserve)
        self._overload = RetryBudget(reserve=1.0)

    def request(self) -> None:
        """Count one call, not its retries."""
        self._outage.request()
        self._overload.request()

    def retry(self, error: RequestError) -> bool:
        """Whether a retry after `error` is within the budget; if so it is paid for.

        A quota's refusal is not paid for: no model worked for it, and it says when to return. A job
        that runs at its quota gets one every few calls, and must only go slower.
        """
        if isinstance(error, RateLimited):
            return True
        return (self._overload if _was_shed(error) else self._outage).retry()


def _was_shed(error: RequestError) -> bool:
    """By the admission queue: not because a model is not loaded, which is an outage."""
    return isinstance(error, Overloaded) and error.reason in MESSAGES
