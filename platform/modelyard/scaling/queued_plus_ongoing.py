"""The first scaling rule: enough replicas for the work that waits and the work that runs."""

from __future__ import annotations

import math


def desired_replicas(queued: float, ongoing: float, target_ongoing_requests: float) -> int:
    """Replicas so that each holds at most `target_ongoing_requests` of all requests in the system.

    Little's law gives queued plus ongoing = arrival rate x time in system. Counting ongoing alone
    would hide the queue once every slot is busy (the seeds' example: 8 replicas in place of 11).
    Raises ValueError for a target that is not positive.
    """
    if target_ongoing_requests <= 0:
        raise ValueError("target_ongoing_requests must be positive")
    return math.ceil((queued + ongoing) / target_ongoing_requests)
