"""Whether slow answers come from the canary more often than its share of them explains."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from modelyard.rollout import histogram
from modelyard.rollout.columns import Bools, Columns, Floats
from modelyard.rollout.event_share import EventShare, events_of
from modelyard.rollout.packing import dump, load
from modelyard.rollout.seen import Seen
from modelyard.rollout.strata import Strata

# Slow is slower than these parts of the control arm's recent answers. The gate is about the first;
# the second sees a canary that is slower throughout with four times as many events.
LEVELS: Final = (0.95, 0.8)
_ENOUGH: Final = 100  # answers of the control arm, before anything is called slow
_FORGETS_S: Final = 60.0
_KEPT: Final = 0.5 ** (_FORGETS_S / 600)


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
        self._shares = [EventShare(strata) for _ in LEVELS]
        self._seen = [Seen() for _ in LEVELS]
        self._recent: Floats = np.zeros(histogram.BUCKETS)
        self._thresholds: list[Any] = []
        self._forgot_at = -math.inf

    def begin(self) -> None:
        for share in self._shares:
            share.begin()

    def take(self, columns: Columns, positions: Floats, share: Floats, now: float) -> None:
        known = ~np.isnan(positions)
        if self._thresholds:
            scaled = positions - columns.canary * (math.log1p(self.margin) / histogram.BASE)
            for threshold, one, seen in zip(
                self._thresholds, self._shares, self._seen, strict=True
            ):
                slow: Bools = known & (scaled >= threshold)
                one.take(events_of(columns, slow, seen, self._strata), share)
        self._learn(positions[known & ~columns.canary], now)

    def evidence(self) -> tuple[float, int]:
        """The mean of the levels'; the logarithm, and the slice that contributes most."""
        logs = [share.evidence() for share in self._shares]
        largest, slice_ = max(logs)
        rest = sum(math.exp(log - largest) for log, _ in logs) / len(logs)
        return largest + math.log(rest), slice_

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
            "shares": [share.state() for share in self._shares],
            "seen": [seen.state() for seen in self._seen],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Another margin asks another question: its evidence begins anew."""
        if state.get("margin") != self.margin:
            return
        load(self, self._FIELDS, state)
        for share, old in zip(self._shares, state["shares"], strict=True):
            share.restore(old)
        for seen, old in zip(self._seen, state["seen"], strict=True):
            seen.restore(old)
