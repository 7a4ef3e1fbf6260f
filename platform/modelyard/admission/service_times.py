"""How long slots are held, and how long from a start to the first item: both learned."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from math import ceil
from typing import Final

SAMPLES: Final = 200
RECENT_S: Final = 120.0
# Before so many there is no rate. The last ones are kept whatever their age: after a quiet night an
# old figure is nearer than none, and the first 150 new ones wash it out.
ENOUGH: Final = 50


class _Window:
    """The last samples, with their sum and in order of size."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()
        self._sorted: list[float] = []
        self._sum = 0.0

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, now: float, value: float) -> None:
        samples = self._samples
        samples.append((now, value))
        insort(self._sorted, value)
        self._sum += value
        while len(samples) > ENOUGH and (len(samples) > SAMPLES or samples[0][0] < now - RECENT_S):
            gone = samples.popleft()[1]
            self._sum -= gone
            del self._sorted[bisect_left(self._sorted, gone)]

    @property
    def mean(self) -> float:
        return self._sum / len(self._samples)

    def quantile(self, part: float) -> float:
        return self._sorted[ceil(part * len(self._sorted)) - 1]


class ServiceTimes:
    """Fed with each slot that is given back: the last 200, none older than 120 s but the last 50.

    Streams and whole answers are apart in the start-to-first times: a generator gives both, and the
    p95 over both would be the time of whole answers, under which every stream looks too late.
    """

    def __init__(self) -> None:
        self._held = _Window()
        self._firsts = {True: _Window(), False: _Window()}
        self._streamed = _Window()

    def add(
        self, now: float, held_s: float, start_to_first_s: float | None, streams: bool = False
    ) -> None:
        """start_to_first_s: None where no item ever came (a failure, a caller that left)."""
        self._held.add(now, max(0.0, held_s))
        if start_to_first_s is not None:
            self._firsts[streams].add(now, max(0.0, start_to_first_s))
            if streams:
                self._streamed.add(now, max(0.0, held_s))

    def release_rate(self, slots: int) -> float | None:
        """Slots given back a second when `slots` are busy (Little's law); None before 50 samples.

        Not the releases counted: those are the arrivals while there is room, so a burst after a
        quiet time would be refused by the rate of the quiet time.
        """
        if len(self._held) < ENOUGH:
            return None
        return slots / max(self._held.mean, 1e-6)

    def p95_start_s(self, streams: bool = False) -> float | None:
        """Of those seen so far, the largest of up to 20; None before the first."""
        firsts = self._firsts[streams]
        return firsts.quantile(0.95) if len(firsts) else None

    def p95_streamed_s(self) -> float | None:
        """From the start of a stream to its end, like `p95_start_s`."""
        return self._streamed.quantile(0.95) if len(self._streamed) else None
