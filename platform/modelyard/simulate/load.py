"""The seeds' overload: what arrives when, and how long each request needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from modelyard.simulate.lengths import NOTHING_KNOWN, Length, read_lengths
from modelyard.simulate.request import Request


@dataclass(frozen=True, slots=True)
class Load:
    """Poisson arrivals at `rate` until `falls_at`, then at `rate_after`; exponential service.

    deadline_s: an answer is useful so long after the request was sent. 26/s on slots that make
    20/s is 130 % of the capacity.
    """

    rate: float = 26.0
    rate_after: float = 14.0
    falls_at: float = 120.0
    horizon: float = 300.0
    slots: int = 8
    mean_service_s: float = 0.4
    deadline_s: float = 2.0

    def times(self, rng: Random) -> Iterator[float]:
        """As the seeds draw them: the first at 0, each gap at the rate of the moment it begins."""
        now = 0.0
        while now <= self.horizon:
            yield now
            now += rng.expovariate(self.rate if now < self.falls_at else self.rate_after)


@dataclass(frozen=True, slots=True)
class Mix:
    """high_part: of the requests in the interactive band, the others in batch. second_part: of
    those that come to the second ingress. log_error_sd: of the length predicted for each request,
    against its true one; None: nothing is predicted. traces: recorded lengths in place of
    exponential ones, with the same mean service.
    """

    high_part: float = 1.0
    second_part: float = 0.0
    log_error_sd: float | None = None
    traces: tuple[Path, ...] = ()


def draw_requests(seed: int, load: Load, mix: Mix) -> list[Request]:
    """Arrivals, services and everything else come from a random stream each, so that the policies,
    and the mixes too, are compared on the same requests (common random numbers)."""
    bands, entries = Random(f"{seed} bands"), Random(f"{seed} entries")
    needs = _recorded(seed, load, mix) if mix.traces else _exponential(seed, load)
    errors = Random(f"{seed} errors")
    requests = []
    for number, (arrived, (length, service_s)) in enumerate(
        zip(load.times(Random(seed)), needs, strict=False)
    ):
        error = errors.gauss(0.0, 1.0)
        request = Request(
            number=number,
            arrived=arrived,
            service_s=service_s,
            deadline=arrived + load.deadline_s,
            band="interactive" if bands.random() < mix.high_part else "batch",
            entry=int(entries.random() < mix.second_part),
            length=length,
        )
        if mix.log_error_sd is not None:
            request.predicted = service_s * math.exp(mix.log_error_sd * error)
        requests.append(request)
    return requests


def _exponential(seed: int, load: Load) -> Iterator[tuple[Length, float]]:
    services = Random(seed + 1)
    while True:
        yield NOTHING_KNOWN, services.expovariate(1 / load.mean_service_s)


def _recorded(seed: int, load: Load, mix: Mix) -> Iterator[tuple[Length, float]]:
    """In their order, from a place of the trace that the seed draws."""
    lengths = read_lengths(mix.traces)
    s_per_token = load.mean_service_s / lengths.mean_output
    number = Random(f"{seed} trace").randrange(len(lengths))
    while True:
        length = lengths[number]
        yield length, length.output_tokens * s_per_token
        number += 1
