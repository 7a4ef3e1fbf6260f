"""Which totals prices allow: a bound between two of them may be raised to the next."""

from __future__ import annotations

import math
from collections.abc import Iterable

_MOST_BITS = 4_000_000
"""Of the set of reachable totals; beyond it only the greatest common divisor is used."""


def round_up(least: int, prices: Iterable[int]) -> int:
    """The least total >= `least` that is a sum of prices, each any number of times; prices > 0."""
    own = sorted(set(prices))
    if least <= 0 or not own:
        return 0
    unit = math.gcd(*own)
    steps = -(-least // unit)
    limit = steps + own[0] // unit
    if len(own) == 1 or limit > _MOST_BITS:
        total = steps * unit
        return -(-least // own[0]) * own[0] if len(own) == 1 else total
    mask = (1 << (limit + 1)) - 1
    reachable = 1
    for price in own:
        shift = price // unit
        while shift <= limit:
            reachable = (reachable | reachable << shift) & mask
            shift *= 2
    above = reachable >> steps
    return (steps + ((above & -above).bit_length() - 1)) * unit
