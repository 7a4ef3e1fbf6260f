"""How good the packing is: `python -m placement.benchmark [--pods FILE]`.

For each family, percent of places above the certified bound, and the seconds of CPU of our own two
paths (by the clock, a machine shared with others tells nothing); means over instances. `added` is
`online.add` with the replicas coming in a random order, fifty times a fiftieth of them.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean

from placement.baselines import BASELINES, places_used
from placement.bounds import bound
from placement.families import FAMILIES, alibaba, instance
from placement.online import add
from placement.packing import pack
from placement.problem import Packing, Problem
from placement.valid import violations

_ROW = "{:<16} {:>6} {:>6} " + " {:>7}" * 8 + " {:>8} {:>8}"
_STEPS = 50


@dataclass(frozen=True)
class Row:
    """above: places over the bound's, as a fraction, by method. seconds: of CPU."""

    bound: int
    above: dict[str, float]
    seconds: dict[str, float]


def measured(problem: Problem, seed: int, *, online: bool) -> Row:
    """Of one kind of place. Every packing of our own is checked."""
    arrivals = _arrivals(problem, seed)
    used = {name: _baseline(problem, arrivals, name) for name in BASELINES}
    seconds = {}
    for name, exact in (("fast", False), ("exact", True)):
        packing, seconds[name] = _timed(partial(pack, problem, exact=exact))
        used[name] = _places(problem, packing)
    if online:
        used["added"] = _places(problem, _added(problem, arrivals))
    least = bound(problem).places
    return Row(least, {name: own / least - 1 for name, own in used.items()}, seconds)


def _arrivals(problem: Problem, seed: int) -> list[str]:
    names = [item.name for item in problem.items for _ in range(item.replicas)]
    random.Random(seed).shuffle(names)
    return names


def _baseline(problem: Problem, arrivals: list[str], name: str) -> int:
    choice, largest_first = BASELINES[name]
    pool, size = problem.places[0].pool, problem.places[0].size
    needs = [problem.item[item].needs[pool] for item in arrivals]
    if largest_first and name == "Ray's PACK":
        needs.sort(key=lambda need: (need[1], need[0]), reverse=True)
    elif largest_first:
        needs.sort(key=lambda need: -max(need[0] / size[0], need[1] / max(size[1], 1)))
    return places_used(needs, size, choice)


def _added(problem: Problem, arrivals: list[str]) -> Packing:
    packing = Packing(())
    for step in range(1, _STEPS + 1):
        here = Counter(arrivals[: len(arrivals) * step // _STEPS])
        items = tuple(
            replace(item, replicas=here[item.name]) for item in problem.items if here[item.name]
        )
        packing = add(Problem(problem.places, items), packing)
    return packing


def _timed(run: Callable[[], Packing]) -> tuple[Packing, float]:
    start = time.process_time()
    packing = run()
    return packing, time.process_time() - start


def _places(problem: Problem, packing: Packing) -> int:
    if broken := violations(problem, packing):
        raise AssertionError("; ".join(broken[:3]))
    if packing.unplaced:
        raise AssertionError(f"{len(packing.unplaced)} items have no place")
    return len(packing.used)


def main() -> None:
    parser = argparse.ArgumentParser(description="Percent of places above the certified bound.")
    parser.add_argument("--replicas", type=int, nargs="*", default=[50, 200, 2000, 10_000])
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--models", type=int, default=200, help="at most; and a tenth of replicas")
    parser.add_argument("--online-up-to", type=int, default=2000, help="replicas; slow beyond")
    parser.add_argument("--pods", type=Path, help="CSV of Alibaba's trace (num_gpu, gpu_milli)")
    asked = parser.parse_args()
    columns = "arrival spread RayPACK FFD fast exact added proved".split()
    print(_ROW.format("family", "n", "bound", *columns, "fast s", "exact s"))
    for replicas in asked.replicas:
        models = min(asked.models, max(10, replicas // 10))
        for family in FAMILIES:
            problems = [instance(family, replicas, models, s) for s in range(asked.instances)]
            _print(family, replicas, problems, online=replicas <= asked.online_up_to)
    if asked.pods:
        pods = alibaba(asked.pods)
        _print("Alibaba's pods", len(pods.places), [pods], online=True)


def _print(family: str, replicas: int, problems: list[Problem], *, online: bool) -> None:
    rows = [measured(problem, seed, online=online) for seed, problem in enumerate(problems)]
    above = [
        f"{100 * mean(row.above[name] for row in rows):.2f}" if name in rows[0].above else "-"
        for name in (*BASELINES, "fast", "exact", "added")
    ]
    proved = sum(row.above["exact"] == 0 for row in rows)
    seconds = [f"{mean(row.seconds[name] for row in rows):.3f}" for name in ("fast", "exact")]
    least = round(mean(row.bound for row in rows))
    print(
        _ROW.format(family, replicas, least, *above, f"{proved}/{len(rows)}", *seconds), flush=True
    )


if __name__ == "__main__":
    main()
