"""A rate that changes with time, and the arrivals that it makes."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """The rate goes straight from one value to another; where they agree it may go on for ever."""

    duration_s: float
    from_per_s: float
    to_per_s: float

    @property
    def expected(self) -> float:
        """Arrivals to expect: the area below the line."""
        if self.from_per_s == self.to_per_s == 0:
            return 0.0
        return self.duration_s * (self.from_per_s + self.to_per_s) / 2

    def time_of(self, area: float) -> float:
        """Seconds until the area below the line is `area`, which is less than `expected`.

        The root of from*t + slope*t**2/2 = area, in the form that cancels nothing.
        """
        slope = (self.to_per_s - self.from_per_s) / self.duration_s
        root = math.sqrt(max(0.0, self.from_per_s**2 + 2 * slope * area))
        return 2 * area / (self.from_per_s + root) if area else 0.0


def arrival_times(segments: Iterable[Segment], points: Iterator[float]) -> Iterator[float]:
    """The points of a process of rate 1, stretched to the rate of the segments.

    Inversion of the cumulative rate (Cinlar 1975): points of a Poisson process give a Poisson
    process of that rate, exactly, with no thinning; points 0, 1, 2, ... give even spacing.
    """
    begin_s, area, point = 0.0, 0.0, next(points)
    for segment in segments:
        while point < area + segment.expected:
            yield begin_s + segment.time_of(point - area)
            point = next(points)
        begin_s += segment.duration_s
        area += segment.expected


def poisson_points(rng: random.Random) -> Iterator[float]:
    point = 0.0
    while True:
        point += rng.expovariate(1.0)
        yield point


def even_points() -> Iterator[float]:
    return (float(index) for index in itertools.count())
