"""What defragmentation gains after a fleet has turned over once: `python -m
placement.defrag_benchmark`.

Percent above the certified bound, by who placed the newcomers; then one pass, routine and
thorough, of at most 5 % of the replicas; then the same turnover with a pass after each tenth of it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

from placement.bounds import bound
from placement.defrag import moves, price
from placement.families import FAMILIES, instance
from placement.move import applied, replicas_of
from placement.problem import Packing, Problem
from placement.turnover import PLACERS, Turnover

SHARE_OF_A_PASS: Final = 0.05
PARTS: Final = 10


@dataclass
class Pass:
    """Moves made, devices freed and seconds taken so far."""

    moves: int = 0
    freed: int = 0
    took_s: float = 0.0

    def run(self, problem: Problem, packing: Packing, *, thorough: bool) -> Packing:
        began = time.perf_counter()
        most = ceil(SHARE_OF_A_PASS * sum(one.replicas for one in packing.placed))
        found = moves(problem, packing, max_moves=most, thorough=thorough)
        self.took_s += time.perf_counter() - began
        after = applied(packing, found)
        self.moves += replicas_of(found)
        self.freed += len(packing.used) - len(after.used)
        return after

    def __str__(self) -> str:
        each = f"{self.moves / self.freed:.1f}" if self.freed else "-"
        return f"{self.moves} moves, {self.freed} freed ({each} each), {self.took_s:.1f} s"


def rows(
    family: str, replicas: int, models: int, seed: int, placers: Sequence[str]
) -> Iterator[str]:
    for name in placers:
        placer = PLACERS[name]
        fleet = Turnover(instance(family, replicas, models, seed), placer, seed)
        fleet.change(replicas)
        least = bound(fleet.problem).price
        cells = [family, str(seed), name, _above(fleet.problem, fleet.packing, least)]
        for thorough in (False, True):
            one = Pass()
            after = one.run(fleet.problem, fleet.packing, thorough=thorough)
            cells.append(f"{_above(fleet.problem, after, least)}: {one}")
        cells.append(_regularly(Turnover(instance(family, replicas, models, seed), placer, seed)))
        yield f"| {' | '.join(cells)} |"


def _regularly(fleet: Turnover) -> str:
    """A pass after each part of the turnover, the last one too."""
    every = Pass()
    replicas = sum(one.replicas for one in fleet.packing.placed)
    for part in range(PARTS):
        fleet.change(replicas * (part + 1) // PARTS - replicas * part // PARTS)
        fleet.packing = every.run(fleet.problem, fleet.packing, thorough=True)
    least = bound(fleet.problem).price
    return f"{_above(fleet.problem, fleet.packing, least)}: {every}"


def _above(problem: Problem, packing: Packing, least: int) -> str:
    return f"{100 * (price(problem, packing) / least - 1):.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m placement.defrag_benchmark")
    parser.add_argument("--families", nargs="+", default=["mix", "half"], choices=[*FAMILIES])
    parser.add_argument("--replicas", type=int, default=600)
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--placers", nargs="+", default=[*PLACERS], choices=[*PLACERS])
    options = parser.parse_args()
    print("| family | seed | placed by | before | routine pass | thorough pass | ten passes |")
    print("|---|---|---|---|---|---|---|")
    for family in options.families:
        for seed in options.seeds:
            for row in rows(family, options.replicas, options.models, seed, options.placers):
                print(row, flush=True)


if __name__ == "__main__":
    main()
