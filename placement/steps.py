"""Moves as ordered steps, each with the cells after it, any of which may be the last.

A replica that moves is there twice for a while: its new cell is added and ready before its old one
is drained and dropped. Every state between two steps is a plan that fits with both counted, and a
file that can be deployed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from modelyard.contract.errors import ModelyardError
from placement.batches import batches, both
from placement.cells import cells_of_packing
from placement.fleet_problem import FleetProblem
from placement.move import Move, applied
from placement.plan import Cell
from placement.problem import Item, Packing, Problem
from placement.swap_areas import PREFIX
from placement.valid import violations


class StepKind(StrEnum):
    """Each only changes what its word says: the file (add, drop) or who gets requests (shift)."""

    ADD = "add"
    READY = "wait ready"
    SHIFT = "shift"
    DRAIN = "drain"
    DROP = "drop"


@dataclass(frozen=True, slots=True)
class Step:
    """batch: its number; those of one batch go together. moves: the batch's. arrives: apps that are
    new or grow, with the replicas that then run whatever the load: more of them may sleep. leaves:
    apps that go whole, and so are drained; an app that only shrinks is not: Serve lets its replica
    finish. cells: after the step. packing: who is where after it, a moving replica at both places.
    """

    kind: StepKind
    batch: int
    moves: tuple[Move, ...]
    arrives: tuple[tuple[str, int], ...]
    leaves: tuple[str, ...]
    cells: tuple[Cell, ...]
    packing: Packing

    @property
    def drained(self) -> frozenset[str]:
        """Apps that get no new requests after it."""
        return frozenset(self.leaves if self.kind in (StepKind.SHIFT, StepKind.DRAIN) else ())


class UnsafeStep(ModelyardError):
    """A step would leave too little room, or too few replicas. The text says which."""


def pinned_of(cells: Sequence[Cell]) -> frozenset[tuple[str, str]]:
    """What cannot move: of a cell over several places a part cannot leave without a restart."""
    several = (cell for cell in cells if len(cell.places) > 1)
    return frozenset((cell.version, place) for cell in several for place in cell.places)


def pinned_areas(packing: Packing) -> frozenset[tuple[str, str]]:
    """Swap areas stay: the memory of one is counted once, and a move holds it twice."""
    areas = (one for one in packing.placed if one.item.startswith(PREFIX))
    return frozenset((one.item, one.place) for one in areas)


def steps(
    asked: FleetProblem,
    packing: Packing,
    cells: Sequence[Cell],
    moves: Sequence[Move],
    *,
    at_once: int = 1,
) -> tuple[Step, ...]:
    """Five for each batch of at most at_once moves. Raises UnsafeStep.

    packing, cells: as they are now. moves: in an order in which each has room, as of defrag.
    """
    made: list[Step] = []
    state, now = packing, tuple(cells)
    for number, batch in enumerate(batches(asked.problem, packing, moves, at_once)):
        for step in _of_batch(asked, number, batch, state, now):
            check(asked, step)
            made.append(step)
        state, now = made[-1].packing, made[-1].cells
    return tuple(made)


def check(asked: FleetProblem, step: Step) -> None:
    """Both places of every moving replica count. Raises UnsafeStep."""
    counts: Counter[str] = Counter()
    for one in step.packing.placed:
        counts[one.item] += one.replicas
    items = tuple(_with_doubles(item, counts[item.name]) for item in asked.problem.items)
    wrong = violations(Problem(asked.problem.places, items), step.packing)
    if wrong:
        raise UnsafeStep(f"step {step.kind} of batch {step.batch + 1}: {wrong[0]}")
    for version, demand in asked.demands.items():
        serving = [c for c in step.cells if c.version == version and c.app not in step.drained]
        least = sum(cell.min_replicas for cell in serving)
        if least < min(demand.least, asked.problem.item[version].replicas):
            raise UnsafeStep(
                f"step {step.kind} of batch {step.batch + 1}: {version} would have {least} "
                f"replicas that always run, and needs {demand.least}: make fewer moves at once"
            )


def _with_doubles(item: Item, count: int) -> Item:
    """Asks for what is there: a replica that moves counts twice, in its spread too."""
    more = max(count - item.replicas, 0)
    return replace(
        item,
        replicas=count,
        per_host=None if item.per_host is None else item.per_host + more,
        per_zone=None if item.per_zone is None else item.per_zone + more,
    )


def _of_batch(
    asked: FleetProblem,
    number: int,
    moves: tuple[Move, ...],
    packing: Packing,
    cells: tuple[Cell, ...],
) -> Iterator[Step]:
    doubled, after = both(packing, moves), applied(packing, moves)
    held = _arrived(asked, cells, cells_of_packing(asked, doubled, cells), moves)
    then = cells_of_packing(asked, after, held)
    targets = {(move.item, move.target) for move in moves}
    arrives = tuple((c.app, c.min_replicas) for c in held if (c.version, c.places[0]) in targets)
    left = {cell.app for cell in held} - {cell.app for cell in then}
    for kind in StepKind:
        last = kind is StepKind.DROP
        yield Step(
            kind,
            number,
            moves,
            arrives,
            tuple(sorted(left)),
            then if last else held,
            after if last else doubled,
        )


def _arrived(
    asked: FleetProblem, before: Sequence[Cell], doubled: Sequence[Cell], moves: Sequence[Move]
) -> tuple[Cell, ...]:
    """What is there keeps its minimum; all that arrives must run, whatever the load: it is not
    ready for a shift otherwise."""
    least = {cell.app: cell.min_replicas for cell in before}
    come = Counter[tuple[str, str]]()
    for move in moves:
        come[move.item, move.target] += move.replicas
    return tuple(
        replace(cell, min_replicas=least.get(cell.app, 0) + come[cell.version, cell.places[0]])
        for cell in doubled
    )
