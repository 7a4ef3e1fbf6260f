"""The retry storm: callers that are refused, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from random import Random
from statistics import fmean
from typing import Final

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.admission.version_queue import VersionQueue
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.clients import AtOnce, Client, Obeying, Sums, Wire
from modelyard.simulate.front import Front
from modelyard.simulate.load import Load, Mix, draw_requests
from modelyard.simulate.queued import QueuedIngress
from modelyard.simulate.slots import Slots
from modelyard.simulate.tally import percentile

USEFUL_S: Final = 2.0
PATIENCE_S: Final = 10.0
OVERLOAD_S: Final = 120.0
PLACES: Final = 16  # as modelyard.client.Models by default

# The clients of one run, with its seed.
Build = Callable[[Agenda, Wire, int], Sequence[Client]]


@dataclass(frozen=True, slots=True)
class Storm:
    """cost_s: of the ingress's one thread for each attempt, a refused one too. jobs: the clients
    always have a next row to send; otherwise calls come at `rate`."""

    name: str
    build: Build
    rate: float
    cost_s: float
    jobs: bool = False

    def run(self, seed: int) -> StormFigures:
        load = Load(rate=self.rate, falls_at=OVERLOAD_S, horizon=OVERLOAD_S)
        agenda = Agenda()
        wire = Wire(agenda, USEFUL_S)
        queued = QueuedIngress(
            agenda,
            Slots(agenda, load.slots, lambda request: request.service_s),
            wire,
            VersionQueue(),
            Random(f"{seed} queue"),
            cut=True,
        )
        wire.ingress = Front(agenda, queued, self.cost_s)
        clients = self.build(agenda, wire, seed)
        pick = Random(f"{seed} clients")
        for request in draw_requests(seed, load, Mix()):
            if self.jobs:
                for client in clients:
                    agenda.at(0.0, partial(client.call, request))
            else:
                agenda.at(request.arrived, partial(pick.choice(clients).call, request))
        agenda.run(load.horizon)
        return StormFigures.of(wire.sums)


@dataclass(frozen=True, slots=True)
class StormFigures:
    """Of the overload alone. useful_per_s: answered within 2 s of the call's first attempt;
    answered_per_s: within the caller's patience of 10 s. median_s: to an answer."""

    calls_per_s: float
    attempts_per_call: float
    attempts_per_s: float
    refused_per_s: float
    useful_per_s: float
    answered_per_s: float
    median_s: float

    @staticmethod
    def of(sums: Sums) -> StormFigures:
        took = [took_s for _, took_s in sums.answered]
        return StormFigures(
            calls_per_s=sums.calls / OVERLOAD_S,
            attempts_per_call=sums.attempts / sums.calls,
            attempts_per_s=sums.attempts / OVERLOAD_S,
            refused_per_s=sums.refused / OVERLOAD_S,
            useful_per_s=sum(took_s <= USEFUL_S for took_s in took) / OVERLOAD_S,
            answered_per_s=len(took) / OVERLOAD_S,
            median_s=percentile(took, 50),
        )

    @staticmethod
    def mean(figures: Iterable[StormFigures]) -> StormFigures:
        runs = list(figures)
        return StormFigures(
            **{
                field.name: fmean(getattr(run, field.name) for run in runs)
                for field in fields(StormFigures)
            }
        )


def at_once(agenda: Agenda, wire: Wire, seed: int, *, attempts: int) -> Sequence[Client]:
    return [AtOnce(agenda, wire, PATIENCE_S, attempts)]


def obeying(
    agenda: Agenda, wire: Wire, seed: int, *, processes: int, rests: bool = True
) -> Sequence[Client]:
    """Processes with modelyard.client in each, with its defaults."""
    return [
        Obeying(
            agenda,
            wire,
            PATIENCE_S,
            RetryPolicy(),
            PLACES,
            Random(f"{seed} client {number}"),
            rests=rests,
        )
        for number in range(processes)
    ]


# Attempts at the server for one call that is always refused, where each of three layers (a gateway,
# an SDK, a user) tries three times: every try of one is a whole call to the next.
LAYERS: Final = 3 * 3 * 3
NO_RETRY: Final = ("no retries", partial(at_once, attempts=1))
THREE_AT_ONCE: Final = ("3 retries at once", partial(at_once, attempts=4))
THREE_LAYERS: Final = ("3 layers of 3 attempts", partial(at_once, attempts=LAYERS))
OBEYING: Final = ("40 processes that obey", partial(obeying, processes=40))
KINDS: Final = (NO_RETRY, THREE_AT_ONCE, THREE_LAYERS, OBEYING)
RATES: Final = {24.0: "120 %", 26.0: "130 %"}
COSTS_S: Final = (0.002, 0.02)

STORMS: Final = (
    *(
        Storm(f"{percent}, {cost_s * 1000:g} ms: {name}", build, rate, cost_s)
        for rate, percent in RATES.items()
        for cost_s in COSTS_S
        for name, build in KINDS
    ),
    Storm(
        "10 jobs, next row at once", partial(obeying, processes=10, rests=False), 26, 0.002, True
    ),
    Storm("10 jobs that rest", partial(obeying, processes=10), 26, 0.002, True),
)
