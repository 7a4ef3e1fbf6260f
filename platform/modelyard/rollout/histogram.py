"""Durations in buckets that are two percent wide, and their percentiles."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# As DDSketch (Masson et al., 2019): a logarithmic bucket knows a value to one percent, and two
# histograms add up. 1 ms to an hour; what is beyond falls into the last bucket at that end.
SMALLEST_S: Final = 0.001
BASE: Final = math.log(1.02)
BUCKETS: Final = math.ceil(math.log(3600 / SMALLEST_S) / BASE)

Counts = NDArray[Any]


def position(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """In buckets, with fractions; nan stays nan. A factor on the seconds becomes a distance."""
    return np.log(np.maximum(seconds, SMALLEST_S) / SMALLEST_S) / BASE


def bucket(positions: NDArray[np.float64]) -> NDArray[np.int64]:
    """Of positions without nan."""
    return np.minimum(positions, BUCKETS - 1).astype(np.int64)


def quantile_bucket(counts: Counts, share: float) -> int | None:
    """The bucket that holds the `share` quantile; None of nothing."""
    cumulated = counts.cumsum()
    total = cumulated[-1]
    return int(cumulated.searchsorted(share * total)) if total > 0 else None


def quantile_s(counts: Counts, share: float) -> float | None:
    """Seconds; linear within the bucket, on the logarithm."""
    index = quantile_bucket(counts, share)
    if index is None:
        return None
    below, inside = float(counts[:index].sum()), float(counts[index])
    part = (share * float(counts.sum()) - below) / inside if inside else 0.0
    return SMALLEST_S * math.exp(BASE * (index + min(max(part, 0.0), 1.0)))
