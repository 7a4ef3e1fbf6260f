"""Which moves are made together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from placement.move import Move, applied, joined
from placement.problem import Packing, Placed, Problem


def batches(
    problem: Problem, packing: Packing, moves: Sequence[Move], at_once: int
) -> Iterator[tuple[Move, ...]]:
    """Neighbours go together while all fit with everybody still in the old place, at most at_once,
    one to a machine: a machine loads one model at a time."""
    state, batch = packing, list[Move]()
    for move in joined(moves):
        if batch and not _may_join(problem, state, batch, move, at_once):
            yield tuple(batch)
            state, batch = applied(state, batch), []
        batch.append(move)
    if batch:
        yield tuple(batch)


def _may_join(
    problem: Problem, state: Packing, batch: Sequence[Move], move: Move, at_once: int
) -> bool:
    hosts = {problem.place[one.target].host for one in batch}
    touched = {(one.item, place) for one in batch for place in (one.source, one.target)}
    return (
        len(batch) < at_once
        and problem.place[move.target].host not in hosts
        and not touched & {(move.item, move.source), (move.item, move.target)}
        and _fits(problem, both(state, [*batch, move]))
    )


def _fits(problem: Problem, packing: Packing) -> bool:
    used: dict[str, list[int]] = {}
    for one in packing.placed:
        need = problem.item[one.item].need_at(problem.place[one.place])
        assert need is not None, "a move goes where its item may be"
        own = used.setdefault(one.place, [0, 0])
        own[0] += one.replicas * need[0]
        own[1] += one.replicas * need[1]
    sizes = {name: problem.place[name].size for name in used}
    return all(own[0] <= sizes[name][0] and own[1] <= sizes[name][1] for name, own in used.items())


def both(packing: Packing, moves: Sequence[Move]) -> Packing:
    """With every moving replica at both its places."""
    at = Counter(packing.at)
    for move in moves:
        at[move.item, move.target] += move.replicas
    placed = sorted(Placed(item, place, count) for (item, place), count in at.items())
    return Packing(tuple(placed), packing.unplaced, packing.method)
