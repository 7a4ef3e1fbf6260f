"""Exact 95 % intervals of what was counted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

_TAIL: Final = 0.025
_HALVINGS: Final = 60


def share_interval(happened: int, runs: int) -> tuple[float, float]:
    """Of a share (Clopper and Pearson, 1934): at least 95 %, whatever the share is."""
    lower = 0.0
    if happened > 0:  # the share at which so many or more are a rare surprise
        lower = _root(lambda p: 1 - _at_most(happened - 1, runs, p) >= _TAIL)
    upper = 1.0
    if happened < runs:
        upper = _root(lambda p: _at_most(happened, runs, p) <= _TAIL)
    return lower, upper


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """By order statistics, whatever the distribution; inf where something never happened."""
    ordered = sorted(values)
    runs = len(ordered)
    rank = 0  # of the last value that the median is rarely below
    while rank < runs and _at_most(rank, runs, 0.5) <= _TAIL:
        rank += 1
    if rank == 0:  # too few for any
        return 0.0, math.inf
    return ordered[rank - 1], ordered[runs - rank]


def _root(beyond: Callable[[float], bool]) -> float:
    """Where it begins to be so."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if beyond(middle):
            high = middle
        else:
            low = middle
    return high


def _at_most(happened: int, runs: int, share: float) -> float:
    """The probability of so many or fewer."""
    if share <= 0:
        return 1.0
    if share >= 1:
        return float(happened >= runs)
    counts = np.arange(happened + 1)
    ways = np.array(
        [
            math.lgamma(runs + 1) - math.lgamma(k + 1) - math.lgamma(runs - k + 1)
            for k in range(happened + 1)
        ]
    )
    logs = ways + counts * math.log(share) + (runs - counts) * math.log1p(-share)
    return float(np.exp(logs).sum())
