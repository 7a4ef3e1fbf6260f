"""Many e-processes that are one: over slices, over windows of time, over how much worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.packing import UnreadableEvidence, dump, load

Floats = NDArray[np.float64]

MOST_WINDOWS: Final = 12  # three hours of quarters; more cost memory and decide little
# The window that sees the whole rollout has most; the others' sum converges whatever it lasts.
_FIRST: Final = 0.6
_LARGEST_LOG: Final = 50.0  # of evidence that is shown


@dataclass(frozen=True, slots=True)
class Against:
    """The slice and the window that fail a canary by most, or else whose evidence is the largest.

    log_e: evidence of "worse", with its weight; log_margin: over the same window, of "worse by more
    than the margin". since: when the window began, in seconds. tallies: of the window.
    """

    log_e: float
    log_margin: float = math.inf
    slice_: int = 0
    since: float = 0.0
    tallies: tuple[float, ...] = ()


def window_weight(number: int) -> float:
    """Of the e-process that begins as the `number`-th; all of them sum to 1."""
    return _FIRST if number == 0 else (1 - _FIRST) / (number * (number + 1))


class Mixture:
    """sum of prior x E over all its parts: an e-process if each part is one (of the same null).

    The largest term is looked at and not the sum: no larger, so that Ville's inequality holds for
    it, and it has a slice and a window. Windows that begin later keep a canary that turns bad late
    from hiding behind a good past. log_e: slices x windows x how much worse; tallies: slices x
    windows x what is counted beside. Bounded: beyond MOST_WINDOWS the least of the later ones makes
    place, which can only lower the evidence.
    """

    _FIELDS: Final = ("log_e", "tallies", "weights", "since", "begun")

    def __init__(self, slice_prior: Floats, worse_prior: Floats, tallies: int = 0) -> None:
        self._slices: Final = np.log(slice_prior)[:, None]
        self._worse: Final = np.log(worse_prior)
        self._counted: Final = tallies
        self.begun = 0
        self.forget()

    def forget(self) -> None:
        """All windows; those that begin later are weighted as if these were still there."""
        slices = len(self._slices)
        self.log_e: Floats = np.zeros((slices, 0, len(self._worse)))
        self.tallies: Floats = np.zeros((slices, 0, self._counted))
        self.weights: Floats = np.zeros(0)
        self.since: Floats = np.zeros(0)
        self._logs: Floats | None = None

    def begin_window(self, now: float) -> None:
        if len(self.weights) == MOST_WINDOWS:
            self._drop(1 + int(self.weighted()[:, 1:].max(axis=0).argmin()))
        slices = len(self._slices)
        self.log_e = np.concatenate((self.log_e, np.zeros((slices, 1, len(self._worse)))), axis=1)
        self.tallies = np.concatenate((self.tallies, np.zeros((slices, 1, self._counted))), axis=1)
        self.weights = np.append(self.weights, window_weight(self.begun))
        self.since = np.append(self.since, float(now))
        self.begun += 1
        self._logs = None

    def add(self, increments: Floats, tallies: Floats | None = None) -> None:
        """slices x how much worse, logarithms; to every window that has begun. tallies: slices x
        what is counted."""
        self.log_e += increments[:, None, :]
        if tallies is not None:
            self.tallies += tallies[:, None, :]
        self._logs = None

    def logs(self, first: int | None = None) -> Floats:
        """Slices x windows, without their weights; of the `first` ways of being worse or of all."""
        if first is None:
            if self._logs is None:
                self._logs = log_mean(self.log_e, self._worse)
            return self._logs
        return log_mean(self.log_e[:, :, :first], self._worse[:first])

    def weighted(self) -> Floats:
        result: Floats = self.logs() + self._slices + np.log(self.weights)
        return result

    def against(self, log_threshold: float, log_margin: Floats | None, enough: float) -> Against:
        """log_margin: slices x windows; enough: what it must reach. None: there is no margin."""
        if not len(self.weights):
            return Against(-math.inf, -math.inf)
        log_e = self.weighted()
        lacks = log_e - log_threshold
        if log_margin is not None:
            lacks = np.minimum(lacks, log_margin - enough)
        shown_of = lacks if lacks.max() >= 0 else log_e
        at = np.unravel_index(int(shown_of.argmax()), lacks.shape)
        return Against(
            float(log_e[at]),
            math.inf if log_margin is None else float(log_margin[at]),
            int(at[0]),
            float(self.since[at[1]]),
            tuple(float(one) for one in self.tallies[at]),
        )

    def _drop(self, window: int) -> None:
        self.log_e = np.delete(self.log_e, window, axis=1)
        self.tallies = np.delete(self.tallies, window, axis=1)
        self.weights = np.delete(self.weights, window)
        self.since = np.delete(self.since, window)

    def state(self) -> dict[str, Any]:
        return dump(self, self._FIELDS)

    def restore(self, state: dict[str, Any]) -> None:
        """Raises UnreadableEvidence."""
        slices, _, worse = self.log_e.shape
        windows = len(state["weights"])
        shapes = [np.shape(state[name]) for name in self._FIELDS[:4]]
        if windows > MOST_WINDOWS or shapes != [
            *((slices, windows, worse), (slices, windows, self._counted), (windows,), (windows,))
        ]:
            raise UnreadableEvidence("a rollout's evidence has another shape: begin it anew")
        load(self, self._FIELDS, state, resized=self._FIELDS[:4])
        self._logs = None


def log_mean(logs: Floats, log_prior: Floats) -> Floats:
    """Over the last axis, with a prior that need not sum to 1."""
    terms = logs + log_prior
    if not terms.size:
        return np.zeros(terms.shape[:-1])
    largest = terms.max(axis=-1)
    sums = np.exp(terms - largest[..., None]).sum(axis=-1)
    result: Floats = largest + np.log(sums) - math.log(float(np.exp(log_prior).sum()))
    return result


def shown(log_evidence: float) -> float:
    """Of evidence without end, a figure that JSON and a table can hold."""
    return math.exp(min(log_evidence, _LARGEST_LOG))
