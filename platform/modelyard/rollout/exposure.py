"""The canary's share of the requests that something can happen to."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.columns import Columns
from modelyard.rollout.packing import dump, load

Floats = NDArray[np.float64]

_PRIOR_REQUESTS: Final = 200.0  # what the weight is worth against what was seen
# After a weight was lowered by hand, requests of the higher one still come in.
_SETTLES_S: Final = 120.0


class Exposure:
    """Of each stratum, known before what it is used for: from the weight and the step's past.

    With conversations drawn to their arm, the weight is exact whatever they do; what was seen
    guards against a draw that is not quite the weight (a version that was not ready somewhere).
    The larger of the two is used: that can only lower the evidence against a canary.
    """

    _FIELDS: Final = ("weight", "_counts", "_before", "_settled_at")

    def __init__(self, strata: int) -> None:
        self.weight = 0.0
        self._counts: Floats = np.zeros((2, strata))
        self._before = 0.0
        self._settled_at = 0.0

    def begin(self, weight: float, now: float) -> None:
        self._before, self._settled_at = self.weight, float(now) + _SETTLES_S
        self.weight = weight
        self._counts[:] = 0

    def share(self, now: float) -> Floats:
        weight = max(self.weight, self._before) if now < self._settled_at else self.weight
        seen = self._counts[1] + _PRIOR_REQUESTS * weight
        result: Floats = np.maximum(weight, seen / (self._counts.sum(axis=0) + _PRIOR_REQUESTS))
        return result

    def take(self, columns: Columns) -> None:
        np.add.at(self._counts, (columns.canary.astype(np.int64), columns.stratum), 1)

    def state(self) -> dict[str, Any]:
        return dump(self, self._FIELDS)

    def restore(self, state: dict[str, Any]) -> None:
        load(self, self._FIELDS, state)
