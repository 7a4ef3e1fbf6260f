"""Whether slow answers come from the canary more often than its share of them explains."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from modelyard.rollout import histogram
from modelyard.rollout.columns import Bools, Columns, Floats
from modelyard.rollout.event_share import RATE_PRIOR, RATES, log_share
from modelyard.rollout.events import events_of
from modelyard.rollout.margin import ENOUGH
from modelyard.rollout.mixture import Against, Mixture
from modelyard.rollout.packing import UnreadableEvidence, dump, load
from modelyard.rollout.seen import SeenInWindow
from modelyard.rollout.strata import Strata

# Slow is slower than these parts of the control arm's recent answers. The gate is about the first,
# which alone says whether the p95 is beyond the margin; the second sees a canary that is slower
# throughout with four times as many events.
LEVELS: Final = (0.95, 0.8)
_ENOUGH: Final = 100  # answers of the control arm before anything is called slow: five beyond p95
# Ten minutes' half-life: a p95 of at least a thousand answers at 2 a second, and no older day.
_HALF_LIFE_S: Final = 600.0
_FORGETS_S: Final = 60.0
_KEPT: Final = 0.5 ** (_FORGETS_S / _HALF_LIFE_S)


class LatencyShare:
    """The e-process of "no slower than the control arm by more than the margin".

    The canary's durations are divided by 1 + margin before they are compared. The thresholds are
    learnt from the control arm's past, and the arms are compared at the same time: whatever the
    thresholds are, both arms' answers exceed them equally often if the canary is within its margin.
    """

    _FIELDS: Final = ("_recent", "_thresholds", "_forgot_at", "margin")

    def __init__(self, strata: Strata, margin: float) -> None:
        self.margin = float(margin)
        self._strata = strata
        prior = np.tile(RATE_PRIOR / len(LEVELS), len(LEVELS))
        self._mixture = Mixture(strata.prior, prior)  # the levels side by side: their mean
        self._seen = [SeenInWindow() for _ in LEVELS]
        self._recent: Floats = np.zeros(histogram.BUCKETS)
        self._thresholds: list[Any] = []
        self._forgot_at = -math.inf

    def begin_window(self, now: float) -> None:
        self._mixture.begin_window(now)
        for seen in self._seen:
            seen.begin_window()

    def forget(self) -> None:
        self._mixture.forget()

    def take(self, columns: Columns, positions: Floats, share: Floats, now: float) -> None:
        known = ~np.isnan(positions)
        if self._thresholds:
            scaled = positions - columns.canary * (math.log1p(self.margin) / histogram.BASE)
            logs = [
                self._log(columns, known & (scaled >= threshold), known, seen, share)
                for threshold, seen in zip(self._thresholds, self._seen, strict=True)
            ]
            self._mixture.add(np.concatenate(logs, axis=1))
        self._learn(positions[known & ~columns.canary], now)

    def against(self, log_threshold: float) -> Against:
        return self._mixture.against(log_threshold, self._mixture.logs(len(RATES)), ENOUGH)

    def _log(
        self, columns: Columns, slow: Bools, known: Bools, seen: SeenInWindow, share: Floats
    ) -> Floats:
        events = events_of(columns, slow, known, seen, self._strata)
        result: Floats = self._strata.members @ log_share(events, share, RATES)
        return result

    def _learn(self, control: Floats, now: float) -> None:
        np.add.at(self._recent, histogram.bucket(control), 1)
        due = now - self._forgot_at >= _FORGETS_S
        if (due or not self._thresholds) and self._recent.sum() >= _ENOUGH:
            buckets = [histogram.quantile_bucket(self._recent, level) for level in LEVELS]
            self._thresholds = [bucket + 1 for bucket in buckets if bucket is not None]
            self._recent *= _KEPT
            self._forgot_at = float(now)

    def state(self) -> dict[str, Any]:
        return {
            **dump(self, self._FIELDS),
            "mixture": self._mixture.state(),
            "seen": [seen.state() for seen in self._seen],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Another margin asks another question: its evidence begins anew.

        Raises UnreadableEvidence.
        """
        if state.get("margin") != self.margin:
            return
        thresholds = state["_thresholds"]
        integers = all(type(one) is int for one in thresholds)
        if len(thresholds) not in (0, len(LEVELS)) or not integers:
            raise UnreadableEvidence("a rollout's evidence has another shape: begin it anew")
        load(self, self._FIELDS, state)
        self._mixture.restore(state["mixture"])
        for seen, old in zip(self._seen, state["seen"], strict=True):
            seen.restore(old)
