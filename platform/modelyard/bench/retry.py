"""What a client does when it is refused: the three kinds that a storm experiment compares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.contract.errors import Overloaded


class RetryKind(StrEnum):
    NONE = "none"
    IMMEDIATE = "immediate"
    OBEY = "obey"


@dataclass(frozen=True, slots=True)
class Retry:
    """max_attempts counts the first one too. obey: as the platform's own client, by its policy."""

    kind: RetryKind = RetryKind.NONE
    max_attempts: int = 4

    def pause_s(self, outcome: Outcome, attempt: int, draw: float) -> float | None:
        """Seconds before the next attempt, None for no other. attempt: from 1. draw: in [0, 1)."""
        over = outcome.verdict in (Verdict.COMPLETED, Verdict.UNFINISHED)
        if self.kind is RetryKind.NONE or over or not outcome.retryable:
            return None
        if self.kind is RetryKind.IMMEDIATE:
            return 0.0 if attempt < self.max_attempts else None
        policy = RetryPolicy(self.max_attempts)
        wait_s = outcome.retry_after_s
        said = Overloaded("refused", retryable=outcome.retryable, retry_after_s=wait_s)
        # Whoever calls has no deadline beside that of each attempt.
        return policy.pause_s(said, attempt, math.inf, draw)
