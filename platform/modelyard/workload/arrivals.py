"""When requests come. Every process is a pure function of a random generator."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from typing import Annotated, Literal, Protocol, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen, Seconds
from modelyard.contract.errors import ConfigError
from modelyard.workload.curve import Segment, arrival_times, even_points, poisson_points
from modelyard.workload.one_of import OneOf
from modelyard.workload.trace import Trace, Traces

RatePerS = Annotated[float, Field(gt=0, le=1e6)]
Spacing = Literal["poisson", "constant"]


class Process(Protocol):
    """length_s: None for one that goes on for ever."""

    def times(self, rng: random.Random, traces: Traces) -> Iterator[float]:
        """Seconds from the start, rising."""
        ...

    def mean_per_s(self, traces: Traces) -> float: ...

    def at(self, rate_per_s: float, traces: Traces) -> Self:
        """The same shape at another mean rate."""
        ...

    def length_s(self, traces: Traces) -> float | None: ...


class _Steady(Frozen):
    rate_per_s: RatePerS

    def mean_per_s(self, traces: Traces) -> float:
        return self.rate_per_s

    def at(self, rate_per_s: float, traces: Traces) -> Self:
        return self.model_copy(update={"rate_per_s": rate_per_s})

    def length_s(self, traces: Traces) -> float | None:
        return None


class Constant(_Steady):
    """Evenly spaced, the first at 0."""

    def times(self, rng: random.Random, traces: Traces) -> Iterator[float]:
        return (index / self.rate_per_s for index in itertools.count())


class Poisson(_Steady):
    """Callers that know nothing of each other."""

    def times(self, rng: random.Random, traces: Traces) -> Iterator[float]:
        whole = Segment(math.inf, self.rate_per_s, self.rate_per_s)
        return arrival_times([whole], poisson_points(rng))


class Bursts(_Steady):
    """Poisson arrivals whose rate is drawn anew every period, from a Gamma distribution.

    cv: standard deviation of the rate over its mean. The number of arrivals in a period is then
    negative binomial: its variance is mean + (cv * mean)**2, a Poisson process has the mean only.
    """

    cv: float = Field(default=1.0, gt=0, le=10)
    period_s: Seconds = 10.0

    def times(self, rng: random.Random, traces: Traces) -> Iterator[float]:
        return arrival_times(self._segments(rng), poisson_points(rng))

    def _segments(self, rng: random.Random) -> Iterator[Segment]:
        shape = 1 / self.cv**2
        while True:
            rate_per_s = rng.gammavariate(shape, self.rate_per_s / shape)
            yield Segment(self.period_s, rate_per_s, rate_per_s)


class Step(Frozen):
    """`to_per_s`: the rate at its end, where it is a ramp."""

    rate_per_s: float = Field(ge=0, le=1e6)
    to_per_s: float | None = Field(default=None, ge=0, le=1e6)
    for_s: Seconds

    def segment(self) -> Segment:
        to_per_s = self.rate_per_s if self.to_per_s is None else self.to_per_s
        return Segment(self.for_s, self.rate_per_s, to_per_s)

    def times_factor(self, factor: float) -> Step:
        to_per_s = None if self.to_per_s is None else self.to_per_s * factor
        return Step(rate_per_s=self.rate_per_s * factor, to_per_s=to_per_s, for_s=self.for_s)


class Steps(Frozen):
    """One rate after another: 26/s for 120 s, then 14/s for 180 s."""

    steps: tuple[Step, ...] = Field(min_length=1)
    spacing: Spacing = "poisson"

    @model_validator(mode="after")
    def _some_arrive(self) -> Self:
        if not any(step.segment().expected for step in self.steps):
            raise ValueError("every step has rate 0, so nothing would come: raise one")
        return self

    def times(self, rng: random.Random, traces: Traces) -> Iterator[float]:
        points = even_points() if self.spacing == "constant" else poisson_points(rng)
        return arrival_times([step.segment() for step in self.steps], points)

    def mean_per_s(self, traces: Traces) -> float:
        area = math.fsum(step.segment().expected for step in self.steps)
        return area / math.fsum(step.for_s for step in self.steps)

    def at(self, rate_per_s: float, traces: Traces) -> Self:
        factor = rate_per_s / self.mean_per_s(traces)
        steps = tuple(step.times_factor(factor) for step in self.steps)
        return self.model_copy(update={"steps": steps})

    def length_s(self, traces: Traces) -> float | None:
        return math.fsum(step.for_s for step in self.steps)


class Replay(Frozen):
    """The times of a recorded trace, and its sizes where the stream gives none.

    from_s: where in the recording to begin. speed: 2 replays it in half the time.
    """

    file: str = Field(min_length=1)
    from_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    speed: float = Field(default=1.0, gt=0, le=1e6)

    def times(self, rng: random.Random, traces: Traces) -> Iterator[float]:
        requests = traces[self.file].since(self.from_s).requests
        return (one.offset_s / self.speed for one in requests)

    def mean_per_s(self, traces: Traces) -> float:
        trace = self._part(traces)
        return len(trace.requests) / trace.length_s * self.speed

    def at(self, rate_per_s: float, traces: Traces) -> Self:
        speed = self.speed * rate_per_s / self.mean_per_s(traces)
        return self.model_copy(update={"speed": speed})

    def length_s(self, traces: Traces) -> float | None:
        # The last one is still within: times at the very end of a run are not sent.
        return math.nextafter(self._part(traces).length_s / self.speed, math.inf)

    def _part(self, traces: Traces) -> Trace:
        """Raises ConfigError where all that is left came at one moment: it has no rate."""
        part = traces[self.file].since(self.from_s)
        if part.length_s == 0:
            raise ConfigError(
                f"{self.file}: what came from {self.from_s:g} s on came at one moment, so it has "
                "no rate to replay: give a longer recording, or begin earlier"
            )
        return part


class Arrivals(OneOf):
    """One of the processes, by its name."""

    constant: Constant | None = None
    poisson: Poisson | None = None
    bursts: Bursts | None = None
    steps: Steps | None = None
    replay: Replay | None = None

    @property
    def process(self) -> Process:
        process: Process = self.value
        return process

    def at(self, rate_per_s: float, traces: Traces) -> Arrivals:
        return Arrivals.model_validate({self.kind: self.process.at(rate_per_s, traces)})
