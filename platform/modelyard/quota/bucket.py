"""A token bucket and a pool of permits, in whole numbers.

Amounts are counted in units of 1/60,000,000,000 of a token: a rate in thousandths of a token per
minute, times a time in microseconds, is then a whole number of units. With floats the parts of a
split bucket would not add up to the whole, and a quota is a promise about sums.
"""

from __future__ import annotations

from typing import Final

UNITS: Final = 60 * 10**9  # in a token
RATE: Final = 1000  # a rate of one token per minute


def microseconds(seconds: float) -> int:
    return int(seconds * 1_000_000)


class TokenBucket:
    """Fills at `rate` up to `burst`. The level is below 0 after more was used than reserved.

    rate in thousandths of a token per minute, burst and level in units, time in seconds of any
    clock that does not run back (one that does fills nothing).
    """

    __slots__ = ("_at_us", "burst", "level", "rate")

    def __init__(self, rate: int, burst: int, level: int, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self.level = min(level, burst)
        self._at_us = microseconds(now)

    @classmethod
    def full(cls, tokens_per_min: int, burst_tokens: int, now: float) -> TokenBucket:
        burst = burst_tokens * UNITS
        return cls(tokens_per_min * RATE, burst, burst, now)

    @property
    def tokens(self) -> float:
        return self.level / UNITS

    def refill(self, now: float) -> None:
        now_us = microseconds(now)
        if now_us > self._at_us:
            filled = self.level + (now_us - self._at_us) * self.rate
            self.level = min(self.burst, filled)
            self._at_us = now_us

    def reserve(self, tokens: int, now: float) -> bool:
        self.refill(now)
        if self.level < tokens * UNITS:
            return False
        self.level -= tokens * UNITS
        return True

    def settle(self, reserved_tokens: int, used_tokens: int, now: float) -> None:
        """Give back what was not used, or go into debt for what was used beyond the reservation.

        The request has run, so there is nothing left to refuse: the next ones wait it off.
        """
        self.refill(now)
        level = self.level + (reserved_tokens - used_tokens) * UNITS
        self.level = min(self.burst, level)

    def resize(self, rate: int, burst: int, now: float) -> int:
        """Take new figures; the units that no longer fit, which leave the bucket."""
        self.refill(now)
        self.rate, self.burst = rate, burst
        excess = max(0, self.level - burst)
        self.level -= excess
        return excess


class Permits:
    """Whole permits that come back by themselves: `held` of them, `in_use` by running requests.

    More can be in use than held: requests outlive a split that became void.
    """

    __slots__ = ("_target", "held", "in_use")

    def __init__(self, held: int) -> None:
        self.held = self._target = held
        self.in_use = 0

    @property
    def free(self) -> int:
        return self.held - self.in_use

    def reserve(self, permits: int) -> bool:
        if self.free < permits:
            return False
        self.in_use += permits
        return True

    def release(self, permits: int) -> None:
        self.in_use -= permits
        self._shrink()

    def resize(self, target: int) -> None:
        """Hold `target` permits. Those in use are given up only as they come back."""
        self.held = max(self.held, target)
        self._target = target
        self._shrink()

    def drop(self) -> None:
        """Hold none, whatever is in use."""
        self.held = self._target = 0

    def _shrink(self) -> None:
        self.held = max(self._target, min(self.held, self.in_use))
