"""An order in which replicas can go from one packing to another, each with a place to go to."""

from __future__ import annotations

from collections import Counter

from placement.move import Move
from placement.occupancy import Occupancy
from placement.problem import Packing, Problem


def ordered(problem: Problem, before: Packing, after: Packing) -> list[Move] | None:
    """Moves of one replica each; None where two or more wait for each other's place.

    A move that can be made is made: what it takes at its target belongs to `after`, so it is in
    nobody's way, and what it leaves is room. So no choice of the order is worse than another.
    """
    now = Occupancy(problem, before)
    leave, arrive = Counter(before.at), Counter(after.at)
    leave, arrive = leave - arrive, arrive - leave
    moves: list[Move] = []
    while leave:
        made = _one_round(problem, now, leave, arrive)
        if not made:
            return None
        moves += made
    return moves


def _one_round(
    problem: Problem,
    now: Occupancy,
    leave: Counter[tuple[str, str]],
    arrive: Counter[tuple[str, str]],
) -> list[Move]:
    """All that can be made now, one after the other."""
    made: list[Move] = []
    for name, source in sorted(leave):
        item = problem.item[name]
        for target in sorted(place for other, place in arrive if other == name):
            while leave[name, source] > 0 and arrive[name, target] > 0:
                if not now.move(item, problem.place[source], problem.place[target]):
                    break
                made.append(Move(name, source, target, 1))
                leave[name, source] -= 1
                arrive[name, target] -= 1
    for counter in (leave, arrive):
        for key in [key for key, count in counter.items() if count <= 0]:
            del counter[key]
    return made
