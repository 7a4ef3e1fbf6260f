"""What a move that was broken off leaves behind."""

from __future__ import annotations

from placement.demand import Demand
from placement.fleet_problem import FleetProblem
from placement.plan import Cell
from placement.problem import Place, Problem
from placement.unfinished import settled

ASKED = FleetProblem(Problem((), ()), {"m@1": Demand(2, 1)}, {})
FIRST = Cell("m@1", "", ("g0",), 1, 1)
SECOND = Cell("m@1", "b", ("g1",), 1, 0)
THIRD = Cell("m@1", "c", ("g2",), 1, 1)
ALL_READY = {"m@1": 1, "m@1--b": 1, "m@1--c": 1}
NOBODY = frozenset[str]()


def test_nothing_is_there_twice() -> None:
    assert settled(ASKED, [FIRST, SECOND], NOBODY, ALL_READY) == (FIRST, SECOND)
    assert settled(ASKED, [FIRST, SECOND], frozenset({"m@1"}), ALL_READY) == (FIRST, SECOND)
    assert settled(ASKED, [FIRST, SECOND], NOBODY, {}) == (FIRST, SECOND)


def test_a_drained_cell_whose_successor_is_ready_goes() -> None:
    cells = [FIRST, SECOND, THIRD]
    assert settled(ASKED, cells, frozenset({"m@1"}), ALL_READY) == (SECOND, THIRD)


def test_a_new_cell_that_is_not_ready_goes_though_the_old_one_is_drained() -> None:
    cells = [FIRST, SECOND, THIRD]
    ready = {"m@1": 1, "m@1--b": 1, "m@1--c": 0}
    assert settled(ASKED, cells, frozenset({"m@1"}), ready) == (FIRST, SECOND)


def test_before_a_drain_the_last_name_goes() -> None:
    assert settled(ASKED, [FIRST, SECOND, THIRD], NOBODY, ALL_READY) == (FIRST, SECOND)


def test_a_cell_that_grew_shrinks_again_while_the_new_replica_is_not_ready() -> None:
    grown = Cell("m@1", "b", ("g1",), 2, 2)
    assert settled(ASKED, [FIRST, grown], NOBODY, ALL_READY) == (
        FIRST,
        Cell("m@1", "b", ("g1",), 1, 1),
    )
    assert settled(ASKED, [FIRST, grown], NOBODY, ALL_READY | {"m@1--b": 2}) == (grown,)


def test_a_part_of_a_cell_that_serves_is_left_to_the_plan() -> None:
    alone = Cell("m@1", "", ("g0",), 3, 1)
    assert settled(ASKED, [alone], NOBODY, {"m@1": 3}) == (alone,)


ZONES = tuple(
    Place(name, "gpu", name, name[0], (80, 20), 1, 1) for name in ("a-0", "a-1", "b-0", "b-1")
)
SCALED = FleetProblem(Problem(ZONES, ()), {"m@1": Demand(2, 1, per_zone=1)}, {})


def test_a_cell_that_sleeps_is_not_taken_for_one_that_cannot_start() -> None:
    """A version that has scaled down: the drained cell's successor is the one that runs."""
    old, sleeps = Cell("m@1", "", ("a-0",), 1, 1), Cell("m@1", "b", ("b-0",), 1, 0)
    new = Cell("m@1", "c", ("a-1",), 1, 1)
    ready = {"m@1": 1, "m@1--b": 0, "m@1--c": 1}
    assert settled(SCALED, [old, sleeps, new], frozenset({"m@1"}), ready) == (sleeps, new)
    assert settled(SCALED, [old, sleeps, new], NOBODY, ready) == (old, sleeps)


def test_what_is_left_lies_apart_as_asked_whoever_else_has_just_died() -> None:
    old, other = Cell("m@1", "", ("a-0",), 1, 1), Cell("m@1", "b", ("b-0",), 1, 1)
    new = Cell("m@1", "c", ("a-1",), 1, 1)
    ready = {"m@1": 1, "m@1--b": 0, "m@1--c": 1}
    assert settled(SCALED, [old, other, new], frozenset({"m@1"}), ready) == (other, new)


def test_before_a_drain_the_last_name_stays_where_the_zones_need_it() -> None:
    old, new = Cell("m@1", "", ("a-0",), 1, 1), Cell("m@1", "b", ("a-1",), 1, 1)
    far = Cell("m@1", "c", ("b-0",), 1, 0)
    ready = {"m@1": 1, "m@1--b": 1, "m@1--c": 1}
    assert settled(SCALED, [old, new, far], NOBODY, ready) == (old, far)
