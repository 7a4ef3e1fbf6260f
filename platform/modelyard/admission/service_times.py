"""How long slots are held, and how long from a start to the first item: both learned."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from math import ceil
from typing import Final, NamedTuple

SAMPLES: Final = 200
RECENT_S: Final = 120.0
# Before so many there is no rate. The last ones are kept whatever their age: after a quiet night an
# old figure is nearer than none, and the first 150 new ones wash it out.
ENOUGH: Final = 50


class Spread(NamedTuple):
    """What four in five need, and what 19 in 20 do: of up to 20 seen, the largest. Seconds."""

    p80: float
    p95: float


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

    def add_at_least(self, now: float, value: float) -> None:
        """A sample that was cut short at `value`: it counts where that is more than is believed.

        A shorter one would say "quick" of what never ended: a failure at once is no answer, and
        callers that give up would hide a slow model. So before any sample it says nothing. What is
        dropped leaves the mean between that of the cut times and that of the whole ones. The
        product-limit estimator (Kaplan and Meier, 1958) needs no such rule, but a flood of failures
        would fill its window, and a full walk for each answer costs more than this is worth.
        """
        if self._samples and value > self.mean:
            self.add(now, value)

    @property
    def mean(self) -> float:
        return self._sum / len(self._samples)

    @property
    def spread(self) -> Spread | None:
        if not self._sorted:
            return None
        return Spread(self._quantile(0.8), self._quantile(0.95))

    def _quantile(self, part: float) -> float:
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
        self,
        now: float,
        held_s: float,
        start_to_first_s: float | None,
        streams: bool = False,
        *,
        cut: bool = False,
    ) -> None:
        """cut: it ended before its answer did, by a failure, a deadline or a caller that left.
        start_to_first_s: None where no item came, which is a cut too. Of what was cut, the times
        are lower limits."""
        held_s = max(0.0, held_s)
        cut = cut or start_to_first_s is None
        whole = _Window.add_at_least if cut else _Window.add
        whole(self._held, now, held_s)
        if streams:
            whole(self._streamed, now, held_s)
        if start_to_first_s is None:
            self._firsts[streams].add_at_least(now, held_s)
        else:
            self._firsts[streams].add(now, max(0.0, start_to_first_s))

    def release_rate(self, slots: int) -> float | None:
        """Slots given back a second when `slots` are busy (Little's law); None before 50 samples.

        Not the releases counted: those are the arrivals while there is room, so a burst after a
        quiet time would be refused by the rate of the quiet time.
        """
        if len(self._held) < ENOUGH:
            return None
        return slots / max(self._held.mean, 1e-6)

    def start_s(self, streams: bool = False) -> Spread | None:
        """From a start to the first item; None before the first."""
        return self._firsts[streams].spread

    def streamed_s(self) -> Spread | None:
        """From the start of a stream to its end."""
        return self._streamed.spread
