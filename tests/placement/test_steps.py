"""Moves as steps: with both places held, never below what must run, from any of them on."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.cells import cells_of_packing, placed_before
from placement.defrag import moves
from placement.demand import Demand
from placement.families import instance
from placement.fleet_problem import FleetProblem
from placement.move import Move, applied, replicas_of
from placement.occupancy import Occupancy
from placement.online import add
from placement.plan import Cell
from placement.problem import Item, Packing, Place, Placed, Problem
from placement.steps import (
    Step,
    StepKind,
    UnsafeStep,
    check,
    pinned_areas,
    pinned_of,
    steps,
)
from placement.unfinished import settled


def fleet_of(items: tuple[Item, ...], places: int, least: int = 1) -> FleetProblem:
    gpus = tuple(Place(f"g{n}", "gpu", f"h{n}", "a", (80, 20), 1, 1) for n in range(places))
    demands = {one.name: Demand(one.replicas, min(least, one.replicas)) for one in items}
    return FleetProblem(Problem(gpus, items), demands, {})


def needing(name: str, replicas: int, memory: int) -> Item:
    return Item(name, replicas, {"gpu": (memory, 1)})


ASKED = fleet_of((needing("m@1", 2, 30), needing("n@1", 1, 50)), 3)
BEFORE = Packing((Placed("m@1", "g0", 1), Placed("m@1", "g1", 1), Placed("n@1", "g2", 1)))
CELLS = cells_of_packing(ASKED, BEFORE)


def test_a_move_is_five_steps_and_the_new_cell_has_a_free_name() -> None:
    made = steps(ASKED, BEFORE, CELLS, [Move("m@1", "g1", "g2", 1)])
    assert [step.kind for step in made] == list(StepKind)
    assert [cell.app for cell in made[0].cells] == ["m@1", "m@1--b", "m@1--c", "n@1"]
    assert made[0].arrives == (("m@1--c", 1),)
    assert made[0].leaves == ("m@1--b",)
    new = next(cell for cell in made[0].cells if cell.app == "m@1--c")
    assert (new.places, new.each, new.min_replicas) == (("g2",), 1, 1)
    assert [cell.app for cell in made[-1].cells] == ["m@1", "m@1--c", "n@1"]
    assert [sorted(step.drained) for step in made] == [[], [], ["m@1--b"], ["m@1--b"], []]


def test_only_adding_and_dropping_change_the_file() -> None:
    made = steps(ASKED, BEFORE, CELLS, [Move("m@1", "g1", "g2", 1)])
    assert made[0].cells == made[1].cells == made[2].cells == made[3].cells != made[4].cells


def test_a_move_to_where_the_version_is_lets_its_cell_grow() -> None:
    made = steps(ASKED, BEFORE, CELLS, [Move("m@1", "g1", "g0", 1)])
    assert [cell.app for cell in made[0].cells] == ["m@1", "m@1--b", "n@1"]
    assert made[0].arrives == (("m@1", 2),)
    assert made[-1].cells[0] == Cell("m@1", "", ("g0",), 2, 1)


def test_of_a_cell_that_grows_only_what_always_runs_must_be_ready() -> None:
    """The replica that it had may sleep: nobody would ever see both."""
    scaled = replace(ASKED, demands={**ASKED.demands, "m@1": Demand(2, 1)})
    made = steps(scaled, BEFORE, cells_of_packing(scaled, BEFORE), [Move("m@1", "g0", "g1", 1)])
    assert [(c.app, c.each, c.min_replicas) for c in made[0].cells[:2]] == [
        ("m@1", 1, 1),
        ("m@1--b", 2, 1),
    ]
    assert made[0].arrives == (("m@1--b", 1),)


def test_a_cell_that_only_shrinks_is_not_drained() -> None:
    asked = fleet_of((needing("m@1", 2, 30),), 2)
    before = Packing((Placed("m@1", "g0", 2),))
    made = steps(asked, before, cells_of_packing(asked, before), [Move("m@1", "g0", "g1", 1)])
    assert made[0].leaves == ()
    assert not any(step.drained for step in made)
    assert [(cell.app, cell.each) for cell in made[-1].cells] == [("m@1", 1), ("m@1--b", 1)]


def test_a_move_without_room_for_both_is_unsafe() -> None:
    asked = fleet_of((needing("m@1", 1, 50), needing("n@1", 1, 50)), 2)
    before = Packing((Placed("m@1", "g0", 1), Placed("n@1", "g1", 1)))
    with pytest.raises(UnsafeStep, match="g1 has 80"):
        steps(asked, before, cells_of_packing(asked, before), [Move("m@1", "g0", "g1", 1)])


def test_a_step_with_too_few_that_always_run_is_unsafe() -> None:
    made = steps(ASKED, BEFORE, CELLS, [Move("m@1", "g1", "g2", 1)])
    shift = made[2]
    both_closed = replace(shift, leaves=("m@1", "m@1--b", "m@1--c"))
    check(ASKED, shift)
    with pytest.raises(UnsafeStep, match="m@1 would have 0"):
        check(ASKED, both_closed)


def test_moves_go_together_up_to_the_limit_and_one_to_a_machine() -> None:
    asked = fleet_of((needing("m@1", 1, 10), needing("n@1", 1, 10), needing("o@1", 1, 10)), 5)
    before = Packing(tuple(Placed(f"{n}@1", f"g{k}", 1) for k, n in enumerate("mno")))
    cells = cells_of_packing(asked, before)
    apart = [Move("m@1", "g0", "g3", 1), Move("n@1", "g1", "g4", 1), Move("o@1", "g2", "g3", 1)]
    assert _batches(steps(asked, before, cells, apart, at_once=5)) == [2, 1]
    assert _batches(steps(asked, before, cells, apart, at_once=1)) == [1, 1, 1]


def test_what_needs_room_that_is_made_first_does_not_go_together() -> None:
    asked = fleet_of((needing("m@1", 1, 50), needing("n@1", 1, 50)), 3)
    before = Packing((Placed("m@1", "g0", 1), Placed("n@1", "g1", 1)))
    chain = [Move("n@1", "g1", "g2", 1), Move("m@1", "g0", "g1", 1)]
    cells = cells_of_packing(asked, before)
    assert _batches(steps(asked, before, cells, chain, at_once=5)) == [1, 1]


def _batches(made: tuple[Step, ...]) -> list[int]:
    return [len(step.moves) for step in made if step.kind is StepKind.ADD]


def test_cells_over_several_places_and_swap_areas_are_pinned() -> None:
    cells = [Cell("m@1", "", ("g0", "g1"), 1, 2), Cell("n@1", "", ("g2",), 1, 1)]
    assert pinned_of(cells) == {("m@1", "g0"), ("m@1", "g1")}
    assert pinned_areas(Packing((Placed("n@1", "g0", 1), Placed("swap:x", "g1", 1)))) == {
        ("swap:x", "g1")
    }


def scattered(problem: Problem, seed: int) -> Packing:
    """Each replica somewhere, so that there is much to gain."""
    rng = random.Random(seed)
    now = Occupancy(problem, Packing(()))
    for one in problem.items:
        for _ in range(one.replicas):
            now.put(one, rng.choice([p for p in problem.places if now.room_for(one, p)]))
    return now.packing()


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(["mix", "half"]), st.integers(0, 10_000), st.integers(1, 4))
def test_every_state_fits_and_the_next_plan_moves_nothing(
    family: str, seed: int, at_once: int
) -> None:
    """Also: what may serve never falls below the floor, and no name lives at two places."""
    problem = instance(family, 24, 6, seed)
    demands = {one.name: Demand(one.replicas, one.replicas // 2) for one in problem.items}
    asked = FleetProblem(problem, demands, {})
    packing = scattered(problem, seed)
    cells = cells_of_packing(asked, packing)
    found = moves(asked.problem, packing, max_moves=6, thorough=False)
    made = steps(asked, packing, cells, found, at_once=at_once)
    assert replicas_of(move for s in made if s.kind is StepKind.ADD for move in s.moves) <= 6
    where: dict[str, tuple[str, ...]] = {cell.app: cell.places for cell in cells}
    for step in made:
        check(asked, step)
        live = {cell.app: cell.places for cell in step.cells}
        assert all(where[app] == live[app] for app in where.keys() & live.keys())
        where = live
        _no_move_follows(asked, step)
    assert made[-1].packing.placed == applied(packing, found).placed


def _no_move_follows(asked: FleetProblem, step: Step) -> None:
    """Broken off here, a plan keeps only what is there; so does finishing or undoing it."""
    held = placed_before(asked, step.cells)
    again = add(asked.problem, held)
    assert not again.unplaced
    assert all(again.at[key] <= held.at[key] for key in again.at)
    for drained in (frozenset[str](), step.drained):
        ready = {cell.app: cell.each for cell in step.cells}
        rest = settled(asked, step.cells, drained, ready)
        counts = Counter(dict[str, int]())
        for cell in rest:
            counts[cell.version] += cell.replicas
        assert all(counts[item.name] >= item.replicas for item in asked.problem.items)
        then = add(asked.problem, placed_before(asked, rest))
        assert not then.unplaced
        assert all(then.at[key] <= held.at[key] for key in then.at)
