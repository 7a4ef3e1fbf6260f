"""When a refused request should come again."""

from __future__ import annotations

import random
from typing import Final

SHORTEST_S: Final = 1.0
LONGEST_S: Final = 120.0
SPREAD: Final = 1.5


def retry_after_s(ahead: float, rate: float | None, rng: random.Random) -> float:
    """Seconds until the `ahead` requests before it have drained at `rate`, spread, from 1 to 120.

    Not the time until the first place is free: under overload the next arrival takes that, and the
    refused would only ask again and again. The spread comes after the lower limit: most queues
    drain within a second, and those refused together would all come back together after it.
    """
    drained_s = ahead / rate if rate else SHORTEST_S
    return min(LONGEST_S / SPREAD, max(SHORTEST_S, drained_s)) * rng.uniform(1.0, SPREAD)
