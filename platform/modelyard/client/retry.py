"""When a job sends a request again, and how long it waits first."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.contract.errors import ConfigError, RequestError


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
