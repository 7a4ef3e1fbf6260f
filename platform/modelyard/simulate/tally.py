"""What became of the requests of one run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from modelyard.simulate.request import Request


@dataclass(slots=True)
class Tally:
    """A Caller that only counts. waits: (arrived, seconds waited) of each that got a slot.

    in_time_at: when each answer came that came in time.
    """

    offered: int = 0
    ended: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    waits: list[tuple[float, float]] = field(default_factory=list)
    in_time_at: list[float] = field(default_factory=list)

    def started(self, request: Request, now: float) -> None:
        self.waits.append((request.arrived, now - request.arrived))

    def answered(self, request: Request, now: float) -> None:
        # As the seeds compare, to the last bit: a request cut at its deadline never comes here.
        if now <= request.deadline:
            self._count("in time", request)
            self.in_time_at.append(now)
        else:
            self._count("late", request)

    def cut(self, request: Request, now: float) -> None:
        self._count("cut", request)

    def refused(self, request: Request, now: float, reason: str, retry_after_s: float) -> None:
        self._count(reason, request)

    def count(self, *how: str, band: str | None = None, entry: int | None = None) -> int:
        """Requests that ended in one of these ways; without any, all that ended."""
        return sum(
            count
            for (ending, its_band, its_entry), count in self.ended.items()
            if (not how or ending in how)
            and band in (None, its_band)
            and entry in (None, its_entry)
        )

    def _count(self, how: str, request: Request) -> None:
        self.ended[how, request.band, request.entry] += 1


def percentile(values: list[float], percent: float) -> float:
    """By nearest rank, as the seeds do. 0 of none."""
    if not values:
        return 0.0
    return sorted(values)[max(1, math.ceil(percent / 100 * len(values))) - 1]
