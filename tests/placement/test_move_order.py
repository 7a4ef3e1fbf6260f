"""An order in which each move has room."""

from __future__ import annotations

from placement.move import Move
from placement.move_order import ordered
from placement.problem import Item, Packing, Place, Placed, Problem

PLACES = tuple(Place(f"g{n}", "gpu", f"g{n}", "a", (10, 1), 1, 1) for n in range(3))


def of(*placed: tuple[str, str]) -> Packing:
    return Packing(tuple(sorted(Placed(item, place, 1) for item, place in placed)))


def test_who_makes_room_goes_first() -> None:
    problem = Problem(PLACES, (Item("a", 1, {"gpu": (8, 0)}), Item("b", 1, {"gpu": (6, 0)})))
    before, after = of(("a", "g1"), ("b", "g0")), of(("a", "g0"), ("b", "g2"))
    assert ordered(problem, before, after) == [Move("b", "g0", "g2", 1), Move("a", "g1", "g0", 1)]


def test_two_that_wait_for_each_other_have_no_order() -> None:
    problem = Problem(PLACES, (Item("a", 1, {"gpu": (8, 0)}), Item("b", 1, {"gpu": (6, 0)})))
    before, after = of(("a", "g1"), ("b", "g0")), of(("a", "g0"), ("b", "g1"))
    assert ordered(problem, before, after) is None
