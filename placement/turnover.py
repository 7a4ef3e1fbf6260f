"""A fleet that changes: replicas go at random, others come, each placed where it comes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from placement.occupancy import Occupancy
from placement.online import add
from placement.problem import Item, Packing, Place, Placed, Problem

Placer = Callable[[Problem, Packing], Packing]
"""From a packing with one replica missing to one with it."""


class Turnover:
    """Begins with every replica of the problem, come in any order."""

    def __init__(self, problem: Problem, placer: Placer, seed: int) -> None:
        self._rng = random.Random(seed)
        self._placer = placer
        self._weights = [item.replicas for item in problem.items]
        self.problem = replace(
            problem, items=tuple(replace(item, replicas=0) for item in problem.items)
        )
        self.packing = Packing(())
        arrivals = [item.name for item in problem.items for _ in range(item.replicas)]
        self._rng.shuffle(arrivals)
        for name in arrivals:
            self._come(name)

    def change(self, replicas: int) -> None:
        """So many go and come; who comes is drawn by the models' shares at the beginning."""
        for _ in range(replicas):
            self._go()
            names = [item.name for item in self.problem.items]
            self._come(self._rng.choices(names, self._weights)[0])

    def _come(self, name: str) -> None:
        self.problem = _asking(self.problem, name, 1)
        self.packing = self._placer(self.problem, self.packing)

    def _go(self) -> None:
        flat = [one for one in self.packing.placed for _ in range(one.replicas)]
        gone = self._rng.choice(flat)
        at = Counter(self.packing.at)
        at[gone.item, gone.place] -= 1
        placed = sorted(Placed(*key, count) for key, count in at.items() if count)
        self.problem = _asking(self.problem, gone.item, -1)
        self.packing = Packing(tuple(placed))


def best_fit(problem: Problem, packing: Packing) -> Packing:
    """The tightest place in use, else the first empty one: what most schedulers do."""
    now = Occupancy(problem, packing)
    counts = Counter[str]()
    for one in packing.placed:
        counts[one.item] += one.replicas
    for item in problem.items:
        for _ in range(item.replicas - counts[item.name]):
            used = [problem.place[name] for name in sorted(packing.used)]
            fits = [place for place in used if now.room_for(item, place)]
            empty = (p for p in problem.places if p.name not in packing.used)
            place = min(fits, key=lambda p: _left(now, item, p)) if fits else next(empty)
            now.put(item, place)
    return now.packing()


def _left(now: Occupancy, item: Item, place: Place) -> tuple[float, str]:
    free, need = now.free(place.name), item.need_at(place)
    assert need is not None, "there is room for it"
    parts = zip(free, need, place.size, strict=True)
    return sum((have - want) / size for have, want, size in parts if size), place.name


def _asking(problem: Problem, name: str, more: int) -> Problem:
    items = (
        replace(item, replicas=item.replicas + more) if item.name == name else item
        for item in problem.items
    )
    return Problem(problem.places, tuple(items))


PLACERS: dict[str, Placer] = {"best fit": best_fit, "ours": add}
