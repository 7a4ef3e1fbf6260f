"""Which replicas to move so that fewer places are in use."""

from __future__ import annotations

from placement.bounds import bound
from placement.evacuation import PER_DEVICE, evacuate
from placement.exchange_window import Pinned
from placement.move import Move, applied, joined
from placement.move_order import ordered
from placement.neighbourhood import Limits, Neighbourhood
from placement.problem import Packing, Problem


def moves(
    problem: Problem,
    packing: Packing,
    *,
    max_moves: int,
    pinned: Pinned = frozenset(),
    per_device: float = PER_DEVICE,
    thorough: bool = True,
) -> tuple[Move, ...]:
    """At most max_moves replicas, in an order in which each has room where it goes while it still
    holds its place; at most per_device for each device freed. Empty where nothing can be freed so.

    pinned: (item, place) that stay. thorough: also exchange replicas among many places, seconds;
    otherwise only empty one place after the other, milliseconds.
    """
    if max_moves < 1:
        return ()
    routine = evacuate(problem, packing, max_moves, pinned, per_device)
    best = routine
    after = applied(packing, routine)
    if thorough and price(problem, after) > bound(problem).price:
        near = Neighbourhood(problem, packing, Limits(max_moves, per_device), pinned)
        better = near.improved(after)
        if price(problem, better) < price(problem, after):
            best = ordered(problem, packing, better) or routine
    return joined(best)


def price(problem: Problem, packing: Packing) -> int:
    """Per hour, in millionths, of the places in use."""
    return sum(problem.place[name].price for name in packing.used)
