"""Whether events come from the canary more often than its share of the requests explains."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.events import Events

Floats = NDArray[np.float64]

# How many times as likely an event is on the canary, and how much each is believed beforehand:
# around the 1 % -> 3 % of the goal; small ones decide slowly whatever they are given, and large
# ones need few events (see `python -m modelyard.simulate.rollout_gates`).
RATES: Final[Floats] = np.array([1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0])
RATE_PRIOR: Final[Floats] = np.array([0.1, 0.15, 0.2, 0.25, 0.15, 0.1, 0.05])


def log_share(events: Events, share: Floats, rates: Floats) -> Floats:
    """Strata x rates: the logarithm of the likelihood of the events' arms, against rate 1.

    share: of the canary, by stratum, known before these events. Given an event, it is the canary's
    with probability r*rate / (r*rate + 1 - r), r the canary's share of those at risk: how many
    events there are says nothing, so that an incident which hits both arms is no evidence, nor is
    traffic that grows. (The partial likelihood of Cox; as a test valid at every look: Johari et
    al., 2022; Grunwald et al., 2024.)
    """
    mixed = np.log1p(share[:, None] * (rates - 1))
    result: Floats = (
        events.canary[:, None] * np.log(rates) - (events.canary + events.control)[:, None] * mixed
    )
    return result
