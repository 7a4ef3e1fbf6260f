"""Fewer places in use by few moves."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.defrag import moves, price
from placement.families import instance
from placement.move import Move, applied, joined, replicas_of
from placement.problem import Item, Packing, Place, Placed, Problem
from placement.turnover import Turnover, best_fit
from placement.valid import violations


def gpu(name: str, host: str = "", zone: str = "a", pool: str = "gpu") -> Place:
    return Place(name, pool, host or name, zone, (80, 20), 1_000_000, 1)


def item(name: str, replicas: int, memory: int, **other: int) -> Item:
    return Item(name, replicas, {"gpu": (memory, 1)}, **other)  # type: ignore[arg-type]


def test_a_place_is_emptied_when_all_of_it_fits_elsewhere() -> None:
    problem = Problem((gpu("g0"), gpu("g1")), (item("a", 1, 50), item("b", 1, 30)))
    packing = Packing((Placed("a", "g0", 1), Placed("b", "g1", 1)))
    assert moves(problem, packing, max_moves=5) == (Move("b", "g1", "g0", 1),)


def test_a_place_is_not_emptied_in_part() -> None:
    problem = Problem((gpu("g0"), gpu("g1")), (item("a", 2, 40), item("b", 2, 30)))
    packing = Packing((Placed("a", "g0", 1), Placed("b", "g0", 1), Placed("a", "g1", 1)))
    problem = replace(problem, items=(item("a", 2, 40), item("b", 1, 30)))
    assert moves(problem, packing, max_moves=5) == ()


def test_a_replica_makes_room_for_another_where_emptying_alone_is_stuck() -> None:
    """c fits nowhere until the small one beside a and x has gone to b; three moves are too many."""
    places = (gpu("g0"), gpu("g1"), gpu("g2"))
    items = (item("a", 1, 30), item("x", 1, 30), item("small", 1, 15))
    held = {"a": "g0", "x": "g0", "small": "g0", "b": "g1", "c": "g2"}
    packing = Packing(tuple(Placed(name, place, 1) for name, place in sorted(held.items())))
    problem = Problem(places, (*items, item("b", 1, 62), item("c", 1, 20)))
    assert moves(problem, packing, max_moves=5, thorough=False) == ()
    found = moves(problem, packing, max_moves=5)
    after = applied(packing, found)
    assert len(after.used) == 2
    assert replicas_of(found) == 2
    assert violations(problem, after) == ()


def test_the_budget_holds_though_more_would_free_more() -> None:
    places = tuple(gpu(f"g{n}") for n in range(4))
    problem = Problem(places, (item("a", 4, 40),))
    packing = Packing(tuple(Placed("a", f"g{n}", 1) for n in range(4)))
    assert replicas_of(moves(problem, packing, max_moves=1)) == 1
    assert moves(problem, packing, max_moves=0) == ()
    assert len(applied(packing, moves(problem, packing, max_moves=2)).used) == 2


def test_what_is_pinned_stays_and_nothing_joins_it() -> None:
    problem = Problem((gpu("g0"), gpu("g1")), (item("a", 2, 40),))
    packing = Packing((Placed("a", "g0", 1), Placed("a", "g1", 1)))
    assert moves(problem, packing, max_moves=5, pinned=frozenset({("a", "g0"), ("a", "g1")})) == ()
    assert moves(problem, packing, max_moves=5, pinned=frozenset({("a", "g0")})) == ()


def test_a_spread_over_hosts_is_kept() -> None:
    places = (gpu("g0", "h0"), gpu("g1", "h1"))
    packing = Packing((Placed("a", "g0", 1), Placed("a", "g1", 1)))
    spread = Problem(places, (item("a", 2, 40, per_host=1),))
    assert moves(spread, packing, max_moves=5) == ()
    assert moves(Problem(places, (item("a", 2, 40),)), packing, max_moves=5) != ()


def test_the_dearest_machine_counts_by_its_devices() -> None:
    """Three replicas on a machine of eight devices are worth their moves."""
    big = Place("m0", "big", "m0", "a", (8, 0), 8_000_000, 8)
    other = Place("m1", "big", "m1", "a", (8, 0), 8_000_000, 8)
    problem = Problem((big, other), (Item("a", 6, {"big": (1, 0)}),))
    packing = Packing((Placed("a", "m0", 3), Placed("a", "m1", 3)))
    found = moves(problem, packing, max_moves=5)
    assert replicas_of(found) == 3
    assert len(found) == 1


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["mix", "half", "uniform"]),
    st.integers(0, 10_000),
    st.integers(1, 8),
    st.booleans(),
)
def test_every_move_has_room_and_the_end_is_cheaper(
    family: str, seed: int, most: int, spread: bool
) -> None:
    fleet = Turnover(instance(family, 30, 8, seed), best_fit, seed)
    fleet.change(15)
    items = fleet.problem.items
    if spread:
        hosts = {p.name: p.host for p in fleet.problem.places}
        caps = {
            one.name: max(
                sum(
                    p.replicas
                    for p in fleet.packing.placed
                    if p.item == one.name and hosts[p.place] == host
                )
                for host in set(hosts.values())
            )
            for one in items
        }
        items = tuple(replace(one, per_host=max(caps[one.name], 1)) for one in items)
    problem = replace(fleet.problem, items=items)
    found = moves(problem, fleet.packing, max_moves=most)
    now = fleet.packing
    for move in found:
        now = applied(now, [move])
        assert violations(problem, now) == ()
    freed = len(fleet.packing.used) - len(now.used)
    assert replicas_of(found) <= min(most, 2 * freed)
    assert (price(problem, now) < price(problem, fleet.packing)) == bool(found)


def test_the_same_question_has_the_same_answer() -> None:
    fleet = Turnover(instance("half", 40, 10, 3), best_fit, 3)
    fleet.change(40)
    first = moves(fleet.problem, fleet.packing, max_moves=6)
    assert first == moves(fleet.problem, fleet.packing, max_moves=6)


def test_neighbouring_moves_are_one() -> None:
    one = Move("a", "g0", "g1", 1)
    assert joined([one, one, Move("a", "g0", "g2", 1)]) == (
        Move("a", "g0", "g1", 2),
        Move("a", "g0", "g2", 1),
    )
