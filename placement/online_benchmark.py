"""How good additions are, without departures and with them: `python -m placement.online_benchmark`.

Percent of places above the certified bound, mean (worst) over the seeds: after all replicas came
one by one in a random order, and after as many have gone at random and been followed by others.
Nothing is ever moved. The instances and the fleet are those of `placement.defrag_benchmark`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import mean

from placement.bounds import bound
from placement.families import FAMILIES, instance
from placement.turnover import PLACERS, Placer, Turnover
from placement.valid import violations


def measured(
    family: str, replicas: int, models: int, seed: int, placer: Placer
) -> tuple[float, float]:
    """Above the bound, as fractions: after the arrivals, after the turnover."""
    fleet = Turnover(instance(family, replicas, models, seed), placer, seed)
    arrived = _above(fleet)
    fleet.change(replicas)
    return arrived, _above(fleet)


def _above(fleet: Turnover) -> float:
    if broken := violations(fleet.problem, fleet.packing):
        raise AssertionError("; ".join(broken[:3]))
    return len(fleet.packing.used) / bound(fleet.problem).places - 1


def row(family: str, replicas: int, models: int, seeds: Sequence[int], name: str) -> str:
    runs = [measured(family, replicas, models, seed, PLACERS[name]) for seed in seeds]
    cells = (f"{100 * mean(own):5.1f} ({100 * max(own):4.1f})" for own in zip(*runs, strict=True))
    return f"{family:<16} {replicas:>6} {name:<9} " + "  ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m placement.online_benchmark")
    parser.add_argument("--families", nargs="+", default=[*FAMILIES], choices=[*FAMILIES])
    parser.add_argument("--replicas", type=int, default=600)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--placers", nargs="+", default=[*PLACERS], choices=[*PLACERS])
    asked = parser.parse_args()
    print(f"{'family':<16} {'n':>6} {'rule':<9} {'arrivals':>12}  {'turnover':>12}")
    for family in asked.families:
        for name in asked.placers:
            print(row(family, asked.replicas, asked.models, asked.seeds, name), flush=True)


if __name__ == "__main__":
    main()
