"""Whether the canary exceeds an absolute limit, by itself and not with the control arm."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from modelyard.rollout.columns import Floats
from modelyard.rollout.event_share import log_share
from modelyard.rollout.events import Events
from modelyard.rollout.mixture import Against, Mixture
from modelyard.rollout.packing import dump, load

# How many times the limit's odds, and how many times the control arm's rate: taken in pairs.
_TIMES: Final[Floats] = np.array([1.5, 2.0, 3.0, 5.0, 10.0, 30.0])
_PRIOR: Final[Floats] = np.full(len(_TIMES), 1 / len(_TIMES))
MOST_COMPARED: Final = 0.95  # beyond this weight the control arm is too small to say anything
# The smaller factor of a block: of a single request it would nearly always be the one that lowers.
_BLOCK_REQUESTS: Final = 200
_BLOCK_S: Final = 30.0


class Limit:
    """The e-process of "at each moment within the limit, or no worse than the control arm".

    Each block multiplies it by the smaller of two factors: that of a test of the canary alone
    against the limit, and that of log_share. Under either part of the hypothesis the mean of the
    smaller one is at most 1, so that an incident which hits both arms adds nothing, however bad;
    and where no control arm is left, the first factor counts alone. What is counted is the first
    event of a conversation, among requests of those that had none.
    """

    _FIELDS: Final = ("_alone", "_compared", "_counts", "_block_requests", "_block_began")

    def __init__(self, limit: float) -> None:
        """limit: of the share of requests with an event, 0 to 1."""
        self.limit = float(limit)
        self._mixture = Mixture(np.ones(1), _PRIOR, tallies=2)
        odds = 1 + limit * (_TIMES - 1)
        self._log_event: Final = np.log(_TIMES / odds)
        self._log_other: Final = -np.log(odds)
        self._open_block(0.0)

    def begin_window(self, now: float) -> None:
        self._close_block(now)
        self._mixture.begin_window(now)

    def take(self, events: Events, share: Floats, weight: float, now: float) -> None:
        """share: see log_share; weight: of the canary, 0 to 1."""
        happened, at_risk = float(events.canary.sum()), float(events.canary_at_risk.sum())
        alone = happened * self._log_event + (at_risk - happened) * self._log_other
        if weight > MOST_COMPARED:
            self._close_block(now)
            self._mixture.add(alone[None, :], np.array([[happened, at_risk]]))
            return
        if not self._block_requests:
            self._block_began = float(now)
        self._alone += alone
        self._compared += log_share(events, share, _TIMES).sum(axis=0)
        self._counts += (happened, at_risk)
        self._block_requests += int(at_risk + events.control_at_risk.sum())
        if self._block_requests >= _BLOCK_REQUESTS or now - self._block_began >= _BLOCK_S:
            self._close_block(now)

    def against(self, log_threshold: float) -> Against:
        if self.limit >= 1:
            return Against(-math.inf, tallies=(0.0, 0.0))
        return self._mixture.against(log_threshold, None, 0.0)

    def _open_block(self, now: float) -> None:
        self._alone: Floats = np.zeros(len(_TIMES))
        self._compared: Floats = np.zeros(len(_TIMES))
        self._counts: Floats = np.zeros(2)
        self._block_requests = 0
        self._block_began = float(now)

    def _close_block(self, now: float) -> None:
        self._mixture.add(np.minimum(self._alone, self._compared)[None, :], self._counts[None, :])
        self._open_block(now)

    def state(self) -> dict[str, Any]:
        return {"limit": self.limit, **dump(self, self._FIELDS), "mixture": self._mixture.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Another limit asks another question: its evidence begins anew."""
        if state.get("limit") == self.limit:
            load(self, self._FIELDS, state)
            self._mixture.restore(state["mixture"])
