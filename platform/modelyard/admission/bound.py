"""How many requests may wait."""

from __future__ import annotations

import math
from typing import Final

from modelyard.admission.service_times import Spread

# Of what drains within the slack. All of it would be right if every service took the mean; with
# exponential times 0.3 to 0.9 of it gave the most answers in time (the seeds' 130 % experiment).
PART: Final = 0.6
# What the margin may take of a request's time. Under overload slow answers must not talk the queue
# into refusing everybody. At 0.5 that experiment had 1.6 % of its answers late, from 0.75 on the
# p95's own noise (a tenth, of 200 samples) moved the bound and cost goodput.
MARGIN_CAP: Final = 0.6


def margin_s(needs: Spread | None, whole_s: float) -> float:
    """Seconds before its deadline by which a request must start.

    whole_s: from its arrival to its deadline. Nothing is kept back where nothing is known.
    """
    return 0.0 if needs is None else min(needs.p95, MARGIN_CAP * whole_s)


def slack_s(needs: Spread | None, whole_s: float) -> float:
    """Seconds of a request's time for which others may be before it in the queue; may be below 0.

    Where most need more than the cap on the margin, a queue that used the rest of the time would
    have most of them cut. Four in five must have theirs after the longest wait: as the model slows
    down the queue shrinks to one. Not 19 in 20: of 200 exponential times that p95 is a tenth off,
    and a slow tail is no slow model.
    """
    return whole_s - (0.0 if needs is None else max(margin_s(needs, whole_s), needs.p80))


def queue_bound(rate: float, slack_s: float) -> int:
    """Requests that may wait where `rate` slots a second come free; at least 1.

    slack_s: see the function of this name.
    """
    return max(1, round(PART * rate * slack_s))


def part_of(limit: int, share: int, capacity: int) -> int:
    """This ingress's part of a limit for the whole fleet, rounded up; all of it without capacity.

    Rounded up so that a small limit never shuts an ingress: N ingresses exceed it by under N.
    """
    if capacity <= 0:
        return limit
    return min(limit, math.ceil(limit * max(1, share) / capacity))
