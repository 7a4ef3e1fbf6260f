"""One policy under one load: run with a seed, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from random import Random
from statistics import fmean
from typing import Final

from modelyard.simulate.agenda import Agenda
from modelyard.simulate.load import Load, Mix, draw_requests
from modelyard.simulate.parallel import run_all
from modelyard.simulate.request import Caller, Ingress
from modelyard.simulate.slots import Slots
from modelyard.simulate.tally import Tally, percentile

PLAIN: Final = Mix()
SEEDS_LOAD: Final = Load()
# Ingresses in front of these slots, for one run. The number is its seed.
Build = Callable[[Agenda, Slots, Caller, int], Sequence[Ingress]]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table. draws_at_start: the n-th service to start takes the n-th time drawn, as
    in the seeds' listing; otherwise each request brings its own, which a length predictor needs."""

    name: str
    build: Build
    mix: Mix = PLAIN
    draws_at_start: bool = True

    def run(self, seed: int, load: Load) -> Tally:
        agenda, tally = Agenda(), Tally()
        services = Random(seed + 1)
        slots = Slots(
            agenda,
            load.slots,
            (lambda _: services.expovariate(1 / load.mean_service_s))
            if self.draws_at_start
            else (lambda request: request.service_s),
        )
        ingresses = self.build(agenda, slots, tally, seed)
        requests = draw_requests(seed, load, self.mix)
        tally.offered = len(requests)
        for request in requests:
            agenda.at(request.arrived, partial(ingresses[request.entry].arrive, request))
        agenda.run(load.horizon)
        return tally


@dataclass(frozen=True, slots=True)
class Figures:
    """in_time_per_s: over the whole run, as the seeds count. overload_per_s: until the load falls.
    late_percent: of the answers. high_percent: of the interactive band, answered in time.
    second_shed_percent: of the second ingress's requests, those that never got a slot.
    recovery_s: from the fall of the load to the first request that does not wait.
    settled_s, baseline_s: mean waits from 2 to 10 s after the fall, and in the last minute.
    """

    offered: float
    in_time_per_s: float
    overload_per_s: float
    late_percent: float
    high_percent: float
    second_shed_percent: float
    never_started: float
    cut: float
    p99_wait_s: float
    recovery_s: float
    settled_s: float
    baseline_s: float

    @staticmethod
    def of(tally: Tally, load: Load) -> Figures:
        in_time, late = tally.count("in time"), tally.count("late")
        slots_given = ("in time", "late", "cut")
        second = tally.count(entry=1)
        return Figures(
            offered=tally.offered,
            in_time_per_s=in_time / load.horizon,
            overload_per_s=sum(at <= load.falls_at for at in tally.in_time_at) / load.falls_at,
            late_percent=_percent(late, in_time + late),
            high_percent=_percent(
                tally.count("in time", band="interactive"), tally.count(band="interactive")
            ),
            second_shed_percent=_percent(second - tally.count(*slots_given, entry=1), second),
            never_started=tally.count() - tally.count(*slots_given),
            cut=tally.count("cut"),
            p99_wait_s=percentile([waited for _, waited in tally.waits], 99),
            recovery_s=_recovery_s(tally, load),
            settled_s=_mean_wait_s(tally, load.falls_at + 2, load.falls_at + 10),
            baseline_s=_mean_wait_s(tally, load.horizon - 60, load.horizon),
        )

    @staticmethod
    def mean(figures: Iterable[Figures]) -> Figures:
        runs = list(figures)
        means = {
            field.name: fmean(getattr(run, field.name) for run in runs) for field in fields(Figures)
        }
        return replace(runs[0], **means)


def run_rows(
    rows: Sequence[Row],
    seeds: int,
    load: Load = SEEDS_LOAD,
    done: Callable[[], None] = lambda: None,
) -> list[Figures]:
    """The mean figures of each row over the seeds 1, 2, ... `done` is called after each run."""
    runs = [partial(_figures, row, seed, load) for row in rows for seed in range(1, seeds + 1)]
    figures = run_all(runs, done)
    return [Figures.mean(figures[i : i + seeds]) for i in range(0, len(figures), seeds)]


def _figures(row: Row, seed: int, load: Load) -> Figures:
    return Figures.of(row.run(seed, load), load)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _recovery_s(tally: Tally, load: Load) -> float:
    return min(
        (at - load.falls_at for at, waited in tally.waits if at >= load.falls_at and waited == 0),
        default=load.horizon - load.falls_at,
    )


def _mean_wait_s(tally: Tally, after: float, before: float) -> float:
    waits = [waited for at, waited in tally.waits if after <= at < before]
    return fmean(waits) if waits else 0.0
