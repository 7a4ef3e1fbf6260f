"""Whether events come from the canary more often than its share of the requests explains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.columns import Bools, Columns
from modelyard.rollout.mixture import Mixture
from modelyard.rollout.seen import Seen
from modelyard.rollout.strata import Strata

Floats = NDArray[np.float64]

# How many times as likely an event is on the canary, and how much each is believed beforehand.
RATES: Final[Floats] = np.array([1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0])
_RATE_PRIOR: Final[Floats] = np.array([0.1, 0.15, 0.2, 0.25, 0.15, 0.1, 0.05])


@dataclass(frozen=True, slots=True)
class Events:
    """Of a batch, by stratum; of the control arm and of the canary. The first of a conversation."""

    control: Floats
    canary: Floats

    def __bool__(self) -> bool:
        return bool(self.control.any() or self.canary.any())


def events_of(columns: Columns, happened: Bools, seen: Seen, strata: Strata) -> Events:
    """happened: to which rows. `seen` learns the conversations.

    A conversation with events on both arms in one batch counts for the control arm, and rows are
    put in an order of their own: that in which they came decides nothing.
    """
    rows = np.flatnonzero(happened)
    keys = columns.conversation[rows]
    if keys.any():
        order = np.lexsort((columns.stratum[rows], columns.canary[rows], keys))
        rows = rows[order]
        rows = rows[seen.first(columns.conversation[rows])]
    canary = columns.canary[rows]
    counts = [
        np.bincount(columns.stratum[rows[arm]], minlength=strata.count).astype(np.float64)
        for arm in (~canary, canary)
    ]
    return Events(*counts)


def log_share(events: Events, share: Floats, rates: Floats) -> Floats:
    """Strata x rates: the logarithm of the likelihood of the events' arms, against rate 1.

    Given an event, it is the canary's with probability r*rate / (r*rate + 1 - r), r the canary's
    share of those at risk: how many events there are says nothing, so that an incident which hits
    both arms is no evidence, nor is traffic that grows. (The partial likelihood of Cox; as a test
    valid at every look: Johari et al., 2022; Grunwald et al., 2024.)
    """
    mixed = np.log1p(share[:, None] * (rates - 1))
    result: Floats = (
        events.canary[:, None] * np.log(rates) - (events.canary + events.control)[:, None] * mixed
    )
    return result


class EventShare:
    """The e-process of "an event is no more likely on the canary"."""

    def __init__(self, strata: Strata) -> None:
        self._strata = strata
        self._mixture = Mixture(strata.prior, _RATE_PRIOR)

    def begin(self) -> None:
        self._mixture.begin()

    def take(self, events: Events, share: Floats) -> None:
        """share: of the canary, by stratum, known before these events."""
        if events:
            self._mixture.add(self._strata.members @ log_share(events, share, RATES))

    def evidence(self) -> tuple[float, int]:
        """The logarithm, and the slice that contributes most."""
        return self._mixture.evidence()

    def state(self) -> dict[str, Any]:
        return self._mixture.state()

    def restore(self, state: dict[str, Any]) -> None:
        self._mixture.restore(state)
