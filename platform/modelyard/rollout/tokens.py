"""Whether the canary's answers are longer than its margin: a confidence sequence."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from modelyard.rollout.columns import Columns, Floats
from modelyard.rollout.mixture import Against, window_weight
from modelyard.rollout.packing import dump, load
from modelyard.rollout.strata import Strata

# Of the differences that are looked for, of logarithms: answers 1.35 times as long beyond the
# margin; the evidence of half and of twice that is within a nat of the best choice for them.
_SPREAD: Final = 0.3
_ENOUGH: Final = 50  # answers and conversations of each arm: a mean is not normal before
_MOST_CONVERSATIONS: Final = 1024  # of each arm
_SUMS: Final = 5  # sum of x, n, and by conversation of S*S, S*n, n*n
_X, _N, _SS, _SN, _NN = range(_SUMS)


class TokenCounts:
    """Means of log(1 + tokens), and how sure they are, counted by conversation.

    Answers of a conversation are alike: the variance is that of conversations' sums about the mean
    (ratio estimator; Deng et al., 2018), which needs only sums. A step is a sample of its own: the
    traffic of another hour is not compared with this one's, and what a human let pass in one is not
    held against the next.
    """

    _FIELDS: Final = ("_sums", "_steps")

    def __init__(self, strata: Strata, margin: float) -> None:
        self.margin = float(margin)
        self._strata = strata
        self._sums: Floats = np.zeros((2, strata.count, _SUMS))
        self._conversations: tuple[dict[int, tuple[float, int]], ...] = ({}, {})
        self._steps = 0

    def begin(self) -> None:
        self._steps += 1
        self._sums[:] = 0
        for conversations in self._conversations:
            conversations.clear()

    def take(self, columns: Columns) -> None:
        known = ~np.isnan(columns.log_tokens)
        alone = known & (columns.conversation == 0)
        cell = columns.canary[alone] * self._strata.count + columns.stratum[alone]
        x = columns.log_tokens[alone]
        for weights, fields in ((x, (_X, _SN)), (None, (_N, _NN)), (x * x, (_SS,))):
            sums = np.bincount(cell, weights, 2 * self._strata.count)
            for field in fields:
                self._sums[:, :, field] += sums.reshape(2, -1)
        for row in np.flatnonzero(known & ~alone):
            self._add(
                int(columns.canary[row]),
                int(columns.stratum[row]),
                int(columns.conversation[row]),
                float(columns.log_tokens[row]),
            )

    def mean(self, arm: int, slice_: int = 0) -> float | None:
        """Of log(1 + tokens)."""
        sums = self._slice(arm, slice_)
        return float(sums[_X] / sums[_N]) if sums[_N] else None

    def against(self) -> Against:
        """Of "no longer than the margin", in this step, weighted so that all steps together are an
        e-process; the margin is in it."""
        weight = math.log(window_weight(max(self._steps - 1, 0)))
        logs = [
            weight + math.log(prior) + self._log_e(slice_, 1.0)
            for slice_, prior in enumerate(self._strata.prior)
        ]
        slice_ = int(np.argmax(logs))
        return Against(logs[slice_], slice_=slice_)

    def log_inside(self) -> float:
        """Of "longer than the margin or as long", in this step: shown false, it is inside."""
        return self._log_e(0, -1.0)

    def _add(self, arm: int, stratum: int, key: int, x: float) -> None:
        kept = self._conversations[arm]
        total, n = kept.pop(key, (0.0, 0))
        self._sums[arm, stratum] += (
            x,
            1,
            (total + x) ** 2 - total**2,
            (total + x) * (n + 1) - total * n,
            2 * n + 1,
        )
        kept[key] = total + x, n + 1
        if len(kept) > _MOST_CONVERSATIONS:
            del kept[next(iter(kept))]

    def _slice(self, arm: int, slice_: int) -> Floats:
        result: Floats = self._strata.members[slice_] @ self._sums[arm]
        return result

    def _log_e(self, slice_: int, toward: float) -> float:
        means, variance = [], 0.0
        for arm in (0, 1):
            sums = self._slice(arm, slice_)
            if sums[_N] < _ENOUGH or sums[_N] ** 2 < _ENOUGH * sums[_NN]:
                return 0.0
            mean = sums[_X] / sums[_N]
            squares = sums[_SS] - 2 * mean * sums[_SN] + mean * mean * sums[_NN]
            variance += max(squares, 0.0) / sums[_N] ** 2
            means.append(float(mean))
        beyond = toward * (means[1] - means[0] - math.log1p(self.margin))
        return log_half_normal(beyond, max(variance, 1e-9), _SPREAD)

    def state(self) -> dict[str, Any]:
        kept = [[[key, *value] for key, value in one.items()] for one in self._conversations]
        return {
            **dump(self, self._FIELDS),
            "keys": [np.array([row[0] for row in one], dtype="<u4") for one in kept],
            "values": [np.array([row[1:] for row in one], dtype="<f8") for one in kept],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Sums are of no margin: another one asks its question of the same."""
        load(self, self._FIELDS, state)
        for kept, keys, values in zip(
            self._conversations, state["keys"], state["values"], strict=True
        ):
            kept.clear()
            for key, (total, n) in zip(keys, values, strict=True) if len(keys) else ():
                kept[int(key)] = float(total), int(n)


def log_half_normal(estimate: float, variance: float, spread: float) -> float:
    """The e-value of "the mean is not above 0", for an estimate with that variance.

    A mixture of likelihood ratios over a half-normal prior of the mean (Robbins, 1970; the mSPRT of
    Johari et al., 2022); valid at every look as the sample grows (Waudby-Smith et al., 2024).
    """
    both = variance + spread * spread
    shift = estimate * spread / math.sqrt(variance * both)
    below = math.erfc(-shift / math.sqrt(2))  # 2 * normal distribution function
    if below < 1e-300:
        return -600.0
    return 0.5 * math.log(variance / both) + shift * shift / 2 + math.log(below)
