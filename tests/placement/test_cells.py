"""Cells are named, and keep their names while they live."""

from itertools import islice

from placement.cells import _names, cells_of_packing, name_key, placed_before
from placement.fleet_problem import FleetProblem, fleet_problem
from placement.plan import Cell
from placement.problem import Packing, Placed
from tests.placement.fleets import fleet, memory_of, model, replicas, shared


def asked(count: int = 4, least: int = 1, nodes: int = 4) -> FleetProblem:
    zones = {"a": shared(nodes, zone="a"), "b": shared(nodes, zone="b")}
    spec = fleet(zones, {"m": model(40, "a", "b", scaling=replicas(count, least))})
    return fleet_problem(spec, memory_of(spec))


def at(**places: int) -> Packing:
    named = ((place.replace("_", "-"), count) for place, count in places.items())
    return Packing(tuple(Placed("m@1", place, count) for place, count in named))


def names(cells: tuple[Cell, ...]) -> dict[str, tuple[str, ...]]:
    return {cell.app: cell.places for cell in cells}


def test_the_first_cell_has_no_suffix_and_zones_take_turns() -> None:
    cells = cells_of_packing(asked(), at(a_0_d0=2, a_1_d0=1, b_0_d0=1))
    assert names(cells) == {"m@1": ("a-0-d0",), "m@1--b": ("b-0-d0",), "m@1--c": ("a-1-d0",)}
    assert [cell.each for cell in cells] == [2, 1, 1]


def test_a_cell_keeps_its_name_and_none_takes_that_of_one_that_goes() -> None:
    before = cells_of_packing(asked(), at(a_0_d0=1, b_0_d0=1))
    after = cells_of_packing(asked(), at(b_0_d0=1, a_2_d0=1), before)
    assert names(before) == {"m@1": ("a-0-d0",), "m@1--b": ("b-0-d0",)}
    assert names(after) == {"m@1--b": ("b-0-d0",), "m@1--c": ("a-2-d0",)}


def test_those_that_always_run_lie_apart() -> None:
    cells = cells_of_packing(asked(least=2), at(a_0_d0=2, a_1_d0=1, b_0_d0=1))
    assert [(cell.places[0], cell.min_replicas) for cell in cells] == [
        ("a-0-d0", 1),
        ("b-0-d0", 1),
        ("a-1-d0", 0),
    ]


def test_too_many_cells_are_merged_where_ray_has_no_choice() -> None:
    packing = at(a_0_d0=2, a_1_d0=2, a_2_d0=1, b_0_d0=2)
    merged = cells_of_packing(asked(7), packing, most=3)
    assert sorted(cell.places for cell in merged) == [
        ("a-0-d0", "a-1-d0"),
        ("a-2-d0",),
        ("b-0-d0",),
    ]
    assert sum(cell.replicas for cell in merged) == 7
    assert len(cells_of_packing(asked(7), packing, most=4)) == 4


def test_what_was_placed_is_read_back_and_what_has_gone_is_left_out() -> None:
    packing = at(a_0_d0=2, b_0_d0=1)
    cells = cells_of_packing(asked(), packing)
    odd = (Cell("gone@1", "", ("a-0-d0",), 1, 1), Cell("m@1", "z", ("elsewhere",), 1, 1))
    assert placed_before(asked(), (*cells, *odd)).placed == packing.placed


def test_names_are_in_their_order_and_none_is_a() -> None:
    first = list(islice(_names(), 80))
    assert first[:3] == ["", "b", "c"]
    assert first[25:28] == ["z", "aa", "ab"]
    assert first == sorted(set(first), key=name_key)
    assert "a" not in first
