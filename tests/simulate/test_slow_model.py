"""A model that becomes slower than its requests can bear, and fast again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

import pytest

from modelyard.admission.version_queue import VersionQueue
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.fifo import FifoIngress
from modelyard.simulate.queued import QueuedIngress
from modelyard.simulate.request import Caller, Ingress, Request
from modelyard.simulate.slots import Slots
from modelyard.simulate.tally import Tally

SLOTS: Final = 8
DEADLINE_S: Final = 2.0
FAST_S: Final = 0.4
FAST_RATE: Final = 14.0
SLOW_FROM, LEARNED_BY, SLOW_TO, BACK_BY, ENDS = 30.0, 90.0, 180.0, 190.0, 240.0

Build = Callable[[Agenda, Slots, Caller], Ingress]


@dataclass(frozen=True)
class Shape:
    """service_s: while it is slow, the mean. over: the load on what the slow model makes."""

    service_s: float
    over: float
    is_exponential: bool = False

    def draw(self, rng: Random, now: float) -> float:
        mean_s = self.service_s if SLOW_FROM <= now < SLOW_TO else FAST_S
        return (
            rng.expovariate(1 / mean_s) if self.is_exponential else mean_s * rng.uniform(0.9, 1.1)
        )

    def rate(self, now: float) -> float:
        if SLOW_FROM <= now < SLOW_TO:
            return self.over * SLOTS / self.service_s
        return FAST_RATE


@dataclass
class Good:
    """while_slow: answers in time a second. once_fast: of the requests, those in time."""

    while_slow: float
    once_fast: float


def fifo(agenda: Agenda, slots: Slots, caller: Caller) -> Ingress:
    return FifoIngress(agenda, slots, caller, bound=1)


def production(agenda: Agenda, slots: Slots, caller: Caller) -> Ingress:
    return QueuedIngress(agenda, slots, caller, VersionQueue(), Random(1), cut=True)


def good(shape: Shape, build: Build) -> Good:
    """From a minute after it became slow, and from ten seconds after it became fast again."""
    agenda, tally, services, arrivals = Agenda(), Tally(), Random(2), Random(1)
    slots = Slots(agenda, SLOTS, lambda _: shape.draw(services, agenda.now))
    ingress = build(agenda, slots, tally)
    now, fast = 0.0, 0
    for number in range(100_000):
        now += arrivals.expovariate(shape.rate(now))
        if now > ENDS:
            break
        fast += now >= BACK_BY
        agenda.at(now, partial(ingress.arrive, Request(number, now, 0.0, now + DEADLINE_S)))
    agenda.run(ENDS)
    return Good(
        sum(LEARNED_BY <= at < SLOW_TO for at in tally.in_time_at) / (SLOW_TO - LEARNED_BY),
        sum(BACK_BY <= at < ENDS for at in tally.in_time_at) / fast,
    )


SHAPES = [
    *(Shape(service_s, over) for service_s in (1.2, 1.4, 1.6, 1.8) for over in (1.3, 2.0, 3.0)),
    *(Shape(service_s, 3.0, is_exponential=True) for service_s in (0.8, 1.2, 1.6, 1.8)),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_slow_model_answers_as_many_as_behind_the_shortest_queue(shape: Shape) -> None:
    ours, plain = good(shape, production), good(shape, fifo)
    assert ours.while_slow >= 0.9 * plain.while_slow
    assert ours.once_fast >= 0.95
