import pytest

from placement.problem import Item, Packing, Place, Placed, Problem
from placement.valid import violations

PROBLEM = Problem(
    (
        Place("p0", "gpu", "h0", "a", (80, 20), 1, 1),
        Place("p1", "gpu", "h0", "a", (80, 20), 1, 1),
        Place("c0", "cpu", "h1", "b", (16, 8), 1, 0),
    ),
    (
        Item("chat", 2, {"gpu": (50, 5)}),
        Item("spread", 2, {"gpu": (10, 5), "cpu": (4, 4)}, per_host=1, per_zone=1),
        Item("local", 1, {"gpu": (1, 1), "cpu": (1, 1)}, zones=frozenset("b")),
    ),
)
GOOD = (
    Placed("chat", "p0", 1),
    Placed("chat", "p1", 1),
    Placed("local", "c0", 1),
    Placed("spread", "c0", 1),
    Placed("spread", "p0", 1),
)


def test_a_packing_that_keeps_every_rule_has_no_violation() -> None:
    assert violations(PROBLEM, Packing(GOOD)) == ()


@pytest.mark.parametrize(
    ("out", "into", "said"),
    [
        (0, Placed("chat", "p9", 1), "p9, where chat is to be, is not there"),
        (0, Placed("other", "p0", 1), "other at p0 is not asked for"),
        (0, Placed("chat", "c0", 1), "chat may not be at c0 (cpu, zone b)"),
        (2, Placed("local", "p0", 1), "local may not be at p0 (gpu, zone a)"),
        (0, Placed("chat", "p1", 1), "p1 has 80, 20 and would hold 100, 10"),
        (0, Placed("chat", "p0", 2), "chat asks for 2 replicas, not 3"),
        (3, Placed("spread", "p1", 1), "spread has 2 replicas on host h0, more than 1"),
        (3, Placed("spread", "p1", 1), "spread has 2 replicas in zone a, more than 1"),
    ],
)
def test_each_broken_rule_is_a_sentence(out: int, into: Placed, said: str) -> None:
    placed = (*GOOD[:out], into, *GOOD[out + 1 :])

    assert said in violations(PROBLEM, Packing(placed))


def test_what_is_unplaced_counts_as_answered() -> None:
    assert violations(PROBLEM, Packing(GOOD[1:], unplaced=(("chat", 1),))) == ()
    assert violations(PROBLEM, Packing(GOOD[1:])) == ("chat asks for 2 replicas, not 1",)


def test_what_is_unplaced_is_a_number_for_each_item_once() -> None:
    twice = violations(PROBLEM, Packing(GOOD[1:], unplaced=(("chat", 3), ("chat", 1))))
    assert "An item is listed twice as without a place" in twice
    assert "chat asks for 2 replicas, not 5" in twice
    none = violations(PROBLEM, Packing(GOOD, unplaced=(("chat", 0),)))
    assert none == ("chat has 0 replicas without a place",)
