"""Many e-processes that are one: over slices, over the moments they began, over how much worse."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.packing import dump, load

Floats = NDArray[np.float64]

MOST_STARTS: Final = 12
_FIRST: Final = 0.6
_LARGEST_LOG: Final = 50.0  # of evidence that is shown


def start_weight(number: int) -> float:
    """Of the e-process that begins as the `number`-th; all of them sum to 1."""
    return _FIRST if number == 0 else (1 - _FIRST) / (number * (number + 1))


class Mixture:
    """sum of prior x E over all its parts: an e-process if each part is one (of the same null).

    Parts that begin later keep a canary that turns bad late from hiding behind a good past.
    log_e: slices x starts x how much worse. Bounded: beyond MOST_STARTS the least of the later
    ones makes place, which can only lower the evidence.
    """

    _FIELDS: Final = ("log_e", "weights", "begun")

    def __init__(self, slice_prior: Floats, worse_prior: Floats) -> None:
        self._slices: Final = np.log(slice_prior)[:, None, None]
        self._worse: Final = np.log(worse_prior)[None, None, :]
        self.log_e: Floats = np.zeros((len(slice_prior), 0, len(worse_prior)))
        self.weights: Floats = np.zeros(0)
        self.begun = 0
        self._sums: Floats | None = None

    def begin(self) -> None:
        if len(self.weights) == MOST_STARTS:
            least = 1 + int(self._terms().sum(axis=(0, 2))[1:].argmin())
            self.log_e = np.delete(self.log_e, least, axis=1)
            self.weights = np.delete(self.weights, least)
        slices, _, worse = self.log_e.shape
        self.log_e = np.concatenate((self.log_e, np.zeros((slices, 1, worse))), axis=1)
        self.weights = np.append(self.weights, start_weight(self.begun))
        self.begun += 1
        self._sums = None

    def add(self, increments: Floats) -> None:
        """slices x how much worse, logarithms; to every part that has begun."""
        self.log_e += increments[:, None, :]
        self._sums = None

    def evidence(self) -> tuple[float, int]:
        """The logarithm of the whole, and the slice that contributes most."""
        if self._sums is None:
            self._sums = self._terms().sum(axis=(1, 2))
        rest = 1 - sum(start_weight(number) for number in range(self.begun))
        return math.log(float(self._sums.sum()) + rest), int(self._sums.argmax())

    def _terms(self) -> Floats:
        starts = np.log(self.weights)[None, :, None]
        logs = self.log_e + self._slices + self._worse + starts
        terms: Floats = np.exp(np.minimum(logs, 600.0))  # so that no sum overflows
        return terms

    def state(self) -> dict[str, Any]:
        return dump(self, self._FIELDS)

    def restore(self, state: dict[str, Any]) -> None:
        load(self, self._FIELDS, state)
        self._sums = None


def shown(log_evidence: float) -> float:
    """Of evidence without end, a figure that JSON and a table can hold."""
    return math.exp(min(log_evidence, _LARGEST_LOG))
