"""A move: replicas of an item that leave one place for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from placement.problem import Packing, Placed


@dataclass(frozen=True, slots=True)
class Move:
    """`replicas` replicas of `item` go from the place `source` to the place `target`."""

    item: str
    source: str
    target: str
    replicas: int


def applied(packing: Packing, moves: Iterable[Move]) -> Packing:
    """The packing after all of them. Raises ValueError for more than there is at a place."""
    at = Counter(packing.at)
    for move in moves:
        at[move.item, move.source] -= move.replicas
        if at[move.item, move.source] < 0:
            raise ValueError(f"{move.source} does not hold {move.replicas} of {move.item}")
        at[move.item, move.target] += move.replicas
    placed = sorted(Placed(item, place, count) for (item, place), count in at.items() if count)
    return Packing(tuple(placed), packing.unplaced, packing.method)


def joined(moves: Iterable[Move]) -> tuple[Move, ...]:
    """The same in the same order, neighbours between the same two places as one."""
    result: list[Move] = []
    for move in moves:
        last = result[-1] if result else None
        if last and (last.item, last.source, last.target) == (move.item, move.source, move.target):
            replicas = last.replicas + move.replicas
            result[-1] = Move(move.item, move.source, move.target, replicas)
        else:
            result.append(move)
    return tuple(result)


def replicas_of(moves: Iterable[Move]) -> int:
    """Replicas that move, which is what a budget counts."""
    return sum(move.replicas for move in moves)
