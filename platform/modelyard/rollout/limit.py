"""Whether the canary exceeds an absolute limit, by itself and not with the control arm."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from modelyard.rollout.columns import Floats
from modelyard.rollout.event_share import Events, log_share
from modelyard.rollout.mixture import Mixture

# How many times the limit's odds, and how many times the control arm's rate: taken in pairs.
_TIMES: Final[Floats] = np.array([1.5, 2.0, 3.0, 5.0, 10.0, 30.0])
_PRIOR: Final[Floats] = np.full(len(_TIMES), 1 / len(_TIMES))
MOST_COMPARED: Final = 0.95  # beyond this weight the control arm is too small to say anything


class Limit:
    """The e-process of "at each moment within the limit, or no worse than the control arm".

    Each batch multiplies it by the smaller of two factors: that of a test of the canary alone
    against the limit, and that of EventShare. Under either part of the hypothesis the mean of the
    smaller one is at most 1, so that an incident which hits both arms adds nothing, however bad;
    and where no control arm is left, the first factor counts alone.
    """

    def __init__(self, limit: float) -> None:
        """limit: of the share of requests with an event, 0 to 1."""
        self.limit = float(limit)
        self._mixture = Mixture(np.ones(1), _PRIOR)
        odds = 1 + limit * (_TIMES - 1)
        self._log_event: Final = np.log(_TIMES / odds)
        self._log_other: Final = -np.log(odds)

    def begin(self) -> None:
        self._mixture.begin()

    def take(self, events: Events, others: int, share: Floats, weight: float) -> None:
        """others: requests of the canary without an event. share: see EventShare."""
        alone = float(events.canary.sum()) * self._log_event + others * self._log_other
        if weight <= MOST_COMPARED:
            alone = np.minimum(alone, log_share(events, share, _TIMES).sum(axis=0))
        self._mixture.add(alone[None, :])

    def evidence(self) -> float:
        """The logarithm."""
        return self._mixture.evidence()[0] if self.limit < 1 else -math.inf

    def state(self) -> dict[str, Any]:
        return {"limit": self.limit, "mixture": self._mixture.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Another limit asks another question: its evidence begins anew."""
        if state.get("limit") == self.limit:
            self._mixture.restore(state["mixture"])
