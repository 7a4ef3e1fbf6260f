"""Whether the canary's rate is above the control arm's by more than the margin."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.event_share import RATES
from modelyard.rollout.events import Events
from modelyard.rollout.mixture import log_mean
from modelyard.rollout.strata import Strata

Floats = NDArray[np.float64]

# A margin is asked with more doubt than whether there is any difference at all, which has Ville's
# whole bound: 1 in 10, so that a canary just inside it is kept and one outside is not kept long.
ENOUGH: Final = math.log(10)
TALLIES: Final = 5
_X, _N, _Y, _M, _M2 = range(TALLIES)
# Of RATES: 1 % -> 3 % with half a point allowed is twice what is allowed.
_PRIOR: Final[Floats] = np.array([0.15, 0.25, 0.3, 0.2, 0.06, 0.03, 0.01])
_MOST_SHARE: Final = 0.99  # of the canary: beyond it there is hardly a control arm to compare with


def tallies_of(events: Events, share: Floats, strata: Strata) -> Floats:
    """Slices x TALLIES: the canary's events and requests at risk; the control arm's, weighted by
    the odds of the canary at that time; and its requests at risk by the odds' square.

    Weighted so, the control arm is standardized to when and where the canary had its requests: an
    hour of trouble in a large step does not look like the canary's own.
    """
    odds = (at_most := np.minimum(share, _MOST_SHARE)) / (1 - at_most)
    by_stratum = np.stack(
        (
            events.canary,
            events.canary_at_risk,
            events.control * odds,
            events.control_at_risk * odds,
            events.control_at_risk * odds**2,
        ),
        axis=1,
    )
    result: Floats = strata.members @ by_stratum
    return result


def rates_of(tallies: tuple[float, ...]) -> tuple[float | None, float | None]:
    """Of the control arm (standardized) and of the canary, first events of a request at risk."""
    x, n, y, m, _ = tallies
    return (y / m if m else None), (x / n if n else None)


def log_margin(tallies: Floats, margin: float) -> Floats:
    """Of ... x TALLIES: evidence of "above by more than the margin" (a share, above 0).

    Poisson likelihoods of both arms. Above: the control arm's observed rate, and a mixture over the
    canary's times (that + margin); below: the most that any pair of rates can have which differ by
    the margin, so that the control arm's own noise counts too. (Profile likelihood; with the
    control arm's rate fitted above it is valid to about half a nat.)
    """
    x, n = tallies[..., _X], tallies[..., _N]
    # As many requests as weigh as much: all of them where the odds were always the same.
    scale = tallies[..., _M] / np.maximum(tallies[..., _M2], 1e-300)
    y, m = tallies[..., _Y] * scale, tallies[..., _M] * scale
    control = y / np.maximum(m, 1e-9)
    above = np.minimum((control + margin)[..., None] * RATES, 1.0)
    canary = log_mean(_poisson(x[..., None], n[..., None], above), np.log(_PRIOR))
    total = np.maximum(n + m, 1e-9)
    linear = total * margin - x - y
    root = np.sqrt(linear**2 + 4 * total * y * margin)
    within = np.maximum(root - linear, 0.0) / (2 * total)
    result: Floats = (
        canary + _poisson(y, m, control) - _poisson(x, n, within + margin) - _poisson(y, m, within)
    )
    return result


def _poisson(events: Floats, at_risk: Floats, rate: Floats) -> Floats:
    """The logarithm of the likelihood, but for what is the same at every rate."""
    result: Floats = events * np.log(np.maximum(rate, 1e-12)) - at_risk * rate
    return result
