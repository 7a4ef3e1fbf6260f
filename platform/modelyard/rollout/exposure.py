"""The canary's share of the requests that something can happen to."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.columns import Columns
from modelyard.rollout.packing import dump, load

Floats = NDArray[np.float64]

_PRIOR_REQUESTS: Final = 200.0  # what the weight is worth against what was seen
_ENOUGH: Final = 100  # requests of the canary, before less than the weight is believed
_Z: Final = 3.0  # 1 in 700 above it: the share is a nuisance, and must cost no false alarms
_RECENT_REQUESTS: Final = 500.0  # a share that changes is noticed after so many
# After a weight was lowered by hand, requests of the higher one still come in.
_SETTLES_S: Final = 120.0


class Exposure:
    """Of each stratum, known before what it is used for: from the weight and the step's past.

    With conversations drawn to their arm, the weight is exact whatever they do; what was seen
    guards against a draw that is not quite the weight. Where more was seen, that counts. Where less
    was seen (the canary is not ready everywhere), an upper bound of it counts, or a canary's
    failures would be explained by requests that it never had; and of the recent requests too, for
    it may be ready everywhere in the next minute.
    """

    _FIELDS: Final = ("weight", "_counts", "_recent", "_before", "_settled_at")

    def __init__(self, strata: int) -> None:
        self.weight = 0.0
        self._counts: Floats = np.zeros((2, strata))
        self._recent: Floats = np.zeros((2, strata))
        self._before = 0.0
        self._settled_at = 0.0

    def begin(self, weight: float, now: float) -> None:
        self._before, self._settled_at = self.weight, float(now) + _SETTLES_S
        self.weight = weight
        self._counts[:] = 0
        self._recent[:] = 0

    def share(self, now: float) -> Floats:
        weight = max(self.weight, self._before) if now < self._settled_at else self.weight
        seen = self._counts[1] + _PRIOR_REQUESTS * weight
        result: Floats = np.maximum(weight, seen / (self._counts.sum(axis=0) + _PRIOR_REQUESTS))
        bound = np.maximum(_upper(self._counts), _upper(self._recent))
        known = (self._counts[1] >= _ENOUGH) & (bound < result)
        result[known] = bound[known]
        return result

    def take(self, columns: Columns) -> None:
        count = self._counts.shape[1]
        cell = columns.canary * count + columns.stratum
        new = np.bincount(cell, minlength=2 * count).reshape(2, count)
        self._counts += new
        self._recent *= np.exp(-new.sum(axis=0) / _RECENT_REQUESTS)
        self._recent += new

    def state(self) -> dict[str, Any]:
        return dump(self, self._FIELDS)

    def restore(self, state: dict[str, Any]) -> None:
        load(self, self._FIELDS, state)


def _upper(counts: Floats) -> Floats:
    """Of the canary's share (Wilson's interval)."""
    n = np.maximum(counts.sum(axis=0), 1.0)
    share, z2 = counts[1] / n, _Z * _Z
    spread = _Z * np.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    result: Floats = (share + z2 / (2 * n) + spread) / (1 + z2 / n)
    return result
