"""Cache hits and waiting under the production choice, in a small event simulation.

A replica computes one prompt at a time (0.6 s for the seeds' 3000 shared tokens, 0.06 s when their
prefix is cached), then holds a slot while it generates. A prefix is cached for 60 s after its last
use, as in the seeds' calculation.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

import pytest

from modelyard.routing.choose import Candidate, choose

SLOTS = 24
RESIDENT_S = 60.0
MISS_S, HIT_S, GENERATE_S = 0.6, 0.06, 5.4
PER_TENANT_S = 3 / 60  # the seeds' three requests a minute
WARM_UP_S, END_S = 120.0, 720.0


@dataclass
class Replica:
    name: str
    ends: list[float] = field(default_factory=list)
    computing_until: float = 0.0
    last: dict[str, float] = field(default_factory=dict)

    def load(self, now: float) -> int:
        while self.ends and self.ends[0] <= now:
            heapq.heappop(self.ends)
        return len(self.ends)

    def serve(self, now: float, key: str, generate_s: float) -> tuple[bool, float]:
        """Whether the prefix was cached, and the seconds to the first token."""
        hit = now - self.last.get(key, -math.inf) < RESIDENT_S
        self.last[key] = now
        over = self.load(now) - SLOTS
        slot = heapq.nsmallest(over + 1, self.ends)[-1] if over >= 0 else now
        self.computing_until = max(slot, self.computing_until) + (HIT_S if hit else MISS_S)
        heapq.heappush(self.ends, self.computing_until + generate_s)
        return hit, self.computing_until - now


class Outcome(NamedTuple):
    hits: float
    mean_s: float
    p95_s: float
    used: list[int]  # requests of each replica


Place = Callable[[list[list[Replica]], str, float, Random], Replica]


def picked(groups: list[list[Replica]], key: str, now: float, rng: Random) -> int:
    candidates = []
    for group in groups:
        name = "+".join(one.name for one in group)
        load = sum(one.load(now) for one in group)
        candidates.append(Candidate(name, load, SLOTS * len(group)))
    return choose(candidates, key, rng).chosen


def by_affinity(cells: list[list[Replica]], key: str, now: float, rng: Random) -> Replica:
    """As in production: the ingress chooses a cell, the router a replica of it."""
    cell = cells[picked(cells, key, now, rng)]
    return cell[picked([[one] for one in cell], key, now, rng)]


def blind(cells: list[list[Replica]], key: str, now: float, rng: Random) -> Replica:
    return rng.choice([one for cell in cells for one in cell])


def unbounded(cells: list[list[Replica]], key: str, now: float, rng: Random) -> Replica:
    replicas = [one for cell in cells for one in cell]
    return replicas[picked([[Replica(one.name)] for one in replicas], key, now, rng)]


def round_robin() -> Place:
    turn = 0

    def place(cells: list[list[Replica]], key: str, now: float, rng: Random) -> Replica:
        nonlocal turn
        turn += 1
        replicas = [one for cell in cells for one in cell]
        return replicas[turn % len(replicas)]

    return place


ONE_CELL_OF_SIX, SIX_CELLS_OF_ONE, TWO_CELLS_OF_THREE = (6,), (1,) * 6, (3, 3)


def simulate(place: Place, tenants: dict[str, float], shape: tuple[int, ...], seed: int) -> Outcome:
    """Poisson arrivals of each tenant, in requests a second."""
    rng = Random(seed)
    cells = [[Replica(f"r{n}.{m}") for m in range(size)] for n, size in enumerate(shape)]
    arrivals = []
    for name, rate in tenants.items():
        at = rng.expovariate(rate)
        while at < END_S:
            arrivals.append((at, name))
            at += rng.expovariate(rate)
    hits, waits, used = 0, [], dict.fromkeys((one.name for cell in cells for one in cell), 0)
    for now, name in sorted(arrivals):
        replica = place(cells, name, now, rng)
        hit, wait_s = replica.serve(now, name, rng.expovariate(1 / GENERATE_S))
        if now > WARM_UP_S:
            hits += hit
            waits.append(wait_s)
            used[replica.name] += 1
    waits.sort()
    count = len(waits)
    return Outcome(hits / count, sum(waits) / count, waits[int(0.95 * count)], list(used.values()))


SHAPES = pytest.mark.parametrize(
    "shape", [ONE_CELL_OF_SIX, SIX_CELLS_OF_ONE, TWO_CELLS_OF_THREE], ids=str
)
QUIET = {f"t{n}": PER_TENANT_S for n in range(20)}
HALF_USED = {f"t{n}": PER_TENANT_S for n in range(240)}
ONE_IS_HOT = {"hot": 6.0} | {f"t{n}": PER_TENANT_S for n in range(120)}


@pytest.mark.parametrize("shape", [ONE_CELL_OF_SIX, SIX_CELLS_OF_ONE], ids=str)
def test_the_seeds_calculation(shape: tuple[int, ...]) -> None:
    """1 - e^-0.5 of hits without affinity, 1 - e^-3 with it."""
    without = simulate(blind, QUIET, shape, 1)
    with_it = simulate(by_affinity, QUIET, shape, 1)
    assert without.hits == pytest.approx(1 - math.exp(-0.5), abs=0.03)  # 0.39
    assert with_it.hits == pytest.approx(1 - math.exp(-3), abs=0.03)  # 0.95
    assert with_it.mean_s < without.mean_s / 2


@SHAPES
def test_on_a_half_used_fleet_most_hits_stay(shape: tuple[int, ...]) -> None:
    without = simulate(blind, HALF_USED, shape, 2)
    with_it = simulate(by_affinity, HALF_USED, shape, 2)
    assert without.hits < 0.45
    assert with_it.hits > 0.85
    assert with_it.p95_s < without.p95_s


@SHAPES
def test_one_popular_tenant_does_not_make_affinity_lose_to_round_robin(
    shape: tuple[int, ...],
) -> None:
    """Half of the traffic is one tenant's: 36 of its requests at a time, of 24 slots a replica."""
    bounded = simulate(by_affinity, ONE_IS_HOT, shape, 3)
    in_turn = simulate(round_robin(), ONE_IS_HOT, shape, 3)
    assert bounded.hits > in_turn.hits + 0.1
    assert bounded.mean_s < in_turn.mean_s
    assert bounded.p95_s < in_turn.p95_s
    assert max(bounded.used) < 3 * sum(bounded.used) / 6


def test_without_a_bound_it_would_lose() -> None:
    """What the bound is for: the same traffic with the same hash, and load ignored."""
    ignored = simulate(unbounded, ONE_IS_HOT, ONE_CELL_OF_SIX, 3)
    in_turn = simulate(round_robin(), ONE_IS_HOT, ONE_CELL_OF_SIX, 3)
    assert ignored.hits > in_turn.hits
    assert ignored.p95_s > 10 * in_turn.p95_s
