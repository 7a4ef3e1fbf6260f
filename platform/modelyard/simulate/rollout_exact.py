"""What the quality gate does with pairs, as exact probabilities instead of many runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from modelyard.config.rollout import QualityGate
from modelyard.rollout.noninferiority import LOOKS, Pairs, bound, look_at, paired_z

Floats = NDArray[np.float64]

_MOST: Final = 160  # discordant pairs of either kind; more of them are rarer than 1e-12 here
_NEGLIGIBLE: Final = 1e-15  # the transform's own noise


@dataclass(frozen=True, slots=True)
class Pairing:
    """Shares of pairs in which only one answer is good: the canary's, the control arm's."""

    better: float
    worse: float


@dataclass(frozen=True, slots=True)
class Chances:
    """They sum to 1."""

    promoted: float
    failed: float
    undecided: float


def chances(pairing: Pairing, gate: QualityGate) -> Chances:
    """Of a gate that gets its planned number of pairs.

    The distribution of how many pairs were better and how many worse, look by look, without what
    was decided at one (Armitage, McPherson and Rowe, 1969).
    """
    margin = gate.margin_points / 100
    going_on = np.zeros((_MOST, _MOST))
    going_on[0, 0] = 1.0
    promoted = failed = 0.0
    before = 0
    for look in range(1, LOOKS + 1):
        pairs = look_at(look, gate.judgements)
        going_on = _added(going_on, _trinomial(pairs - before, pairing))
        before = pairs
        for better, worse in np.argwhere(going_on > _NEGLIGIBLE).tolist():
            z = paired_z(Pairs(pairs, better, worse), margin, last=look == LOOKS)
            if abs(z) < bound(pairs, gate.judgements):
                continue
            chance = float(going_on[better, worse])
            promoted, failed = promoted + chance * (z > 0), failed + chance * (z <= 0)
            going_on[better, worse] = 0.0
    return Chances(promoted, failed, float(going_on.sum()))


def _trinomial(pairs: int, pairing: Pairing) -> Floats:
    """Of better x worse."""
    logs = np.full((_MOST, _MOST), -math.inf)
    same = math.log1p(-pairing.better - pairing.worse)
    for better in range(min(pairs, _MOST - 1) + 1):
        for worse in range(min(pairs - better, _MOST - 1) + 1):
            rest = pairs - better - worse
            ways = math.lgamma(pairs + 1) - sum(
                math.lgamma(one + 1) for one in (better, worse, rest)
            )
            logs[better, worse] = (
                ways
                + better * math.log(pairing.better)
                + worse * math.log(pairing.worse)
                + rest * same
            )
    result: Floats = np.exp(logs)
    return result


def _added(one: Floats, other: Floats) -> Floats:
    """The distribution of the sum; what is beyond the grid is lost."""
    shape = (2 * _MOST, 2 * _MOST)
    product = np.fft.rfft2(one, shape) * np.fft.rfft2(other, shape)
    result: Floats = np.fft.irfft2(product, shape)[:_MOST, :_MOST]
    return result
