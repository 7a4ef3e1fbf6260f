"""Whether the canary fails more often than the control arm, and by more than the margin."""

from __future__ import annotations

from typing import Any

import numpy as np

from modelyard.rollout import margin
from modelyard.rollout.columns import Columns, Floats
from modelyard.rollout.event_share import RATE_PRIOR, RATES, log_share
from modelyard.rollout.events import events_of
from modelyard.rollout.mixture import Against, Mixture
from modelyard.rollout.seen import SeenInWindow
from modelyard.rollout.strata import Strata


class ErrorShare:
    """The e-process of "a failure is no more likely on the canary", and its margin's evidence."""

    def __init__(self, strata: Strata, margin_share: float) -> None:
        """margin_share: 0 to 1; the evidence of both is kept when it changes."""
        self._strata = strata
        self._margin = margin_share
        self._mixture = Mixture(strata.prior, RATE_PRIOR, margin.TALLIES)
        self._seen = SeenInWindow()

    def begin_window(self, now: float) -> None:
        self._mixture.begin_window(now)
        self._seen.begin_window()

    def forget(self) -> None:
        self._mixture.forget()

    def take(self, columns: Columns, share: Floats) -> None:
        """share: see log_share."""
        failed = columns.failed
        events = events_of(columns, failed, np.ones_like(failed), self._seen, self._strata)
        self._mixture.add(
            self._strata.members @ log_share(events, share, RATES),
            margin.tallies_of(events, share, self._strata),
        )

    def against(self, log_threshold: float) -> Against:
        logs = margin.log_margin(self._mixture.tallies, self._margin)
        return self._mixture.against(log_threshold, logs, margin.ENOUGH)

    def state(self) -> dict[str, Any]:
        return {"mixture": self._mixture.state(), "seen": self._seen.state()}

    def restore(self, state: dict[str, Any]) -> None:
        self._mixture.restore(state["mixture"])
        self._seen.restore(state["seen"])
