"""Conversations of simulated traffic: which requests are turns of one, and which arm each has."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_GAP_S: Final = 20.0  # between two turns
# Half of the turns belong to long conversations, which are a quarter of all: with one length for
# all, no few conversations could decide.
_LONG: Final = 2.0
_SHORT: Final = 2.0 / 3.0


@dataclass(frozen=True, slots=True)
class Talks:
    """keys: of the conversations, never 0. of: to which of them each request belongs."""

    keys: Ints
    of: Ints

    @classmethod
    def drawn(cls, turns: float, rate_per_s: float, times: Floats, rng: Generator) -> Self | None:
        """None where a request stands for itself. A turn belongs to one of those that are open."""
        if turns <= 1:
            return None
        long = rng.random(len(times)) < 0.5
        mean = turns * np.where(long, _LONG, _SHORT)
        per_s = rate_per_s / 2 / mean
        number = (times + rng.random(len(times)) * _GAP_S * mean) * per_s
        keys, of = np.unique(1 + 2 * number.astype(np.int64) + long, return_inverse=True)
        return cls(keys, of)

    def normal(self, rows: int, alike: float, rng: Generator) -> Floats:
        """Standard normal; of the variance, `alike` is the conversation's."""
        shared = rng.standard_normal((rows, len(self.keys)))[:, self.of]
        own = rng.standard_normal((rows, len(self.of)))
        result: Floats = math.sqrt(alike) * shared + math.sqrt(1 - alike) * own
        return result


def are_on_canary(keys: Ints, salt: int, weight: float) -> NDArray[np.bool_]:
    """By a hash, as an ingress draws: a weight that rises moves none back."""
    x = keys.astype(np.uint64) + np.uint64(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # splitmix64
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    x ^= x >> np.uint64(31)
    result: NDArray[np.bool_] = x / 2.0**64 < weight
    return result
