import pytest

from placement.bounds import bound
from placement.families import instance
from placement.online import add
from placement.packing import pack
from placement.problem import Item, Packing, Place, Placed, Problem
from placement.turnover import Turnover, best_fit
from placement.valid import violations


def devices(count: int) -> tuple[Place, ...]:
    return tuple(Place(f"p{n}", "gpu", f"h{n}", "a", (80, 20), 10, 1) for n in range(count))


def chat(replicas: int, memory: int = 30, priority: int = 0) -> Item:
    return Item("chat", replicas, {"gpu": (memory, 5)}, priority=priority)


def test_another_replica_goes_into_the_room_there_is() -> None:
    fixed = Packing((Placed("chat", "p2", 1),))

    assert add(Problem(devices(4), (chat(2),)), fixed).placed == (Placed("chat", "p2", 2),)


def test_of_too_many_those_in_the_emptiest_place_go() -> None:
    fixed = Packing((Placed("chat", "p0", 1), Placed("chat", "p1", 2)))

    assert add(Problem(devices(2), (chat(2),)), fixed).placed == (Placed("chat", "p1", 2),)


def test_what_was_on_a_lost_place_is_placed_again() -> None:
    fixed = Packing((Placed("chat", "p0", 1), Placed("chat", "lost", 2)))
    after = add(Problem(devices(2), (chat(3),)), fixed)

    assert after.unplaced == ()
    assert after.at["chat", "p0"] >= 1


def test_a_version_that_grew_keeps_the_replicas_that_still_fit() -> None:
    fixed = Packing((Placed("chat", "p0", 2),))
    after = add(Problem(devices(2), (chat(2, memory=50),)), fixed)

    assert after.placed == (Placed("chat", "p0", 1), Placed("chat", "p1", 1))


def test_the_higher_priority_gets_the_room_that_is_left() -> None:
    low = Item("low", 1, {"gpu": (70, 5)})
    after = add(Problem(devices(1), (low, chat(1, priority=1))), Packing(()))

    assert after.placed == (Placed("chat", "p0", 1),)
    assert after.unplaced == (("low", 1),)


def test_a_place_is_not_opened_for_what_fits_beside_others() -> None:
    problem = instance("mix", 100, 10, 0)
    fixed = pack(problem, exact=False)
    room = Problem(problem.places, (*problem.items, Item("tiny", 1, {"gpu": (1, 0)})))

    assert add(room, fixed).used == fixed.used


def test_a_fleet_that_grows_a_tenth_at_a_time_stays_near_the_bound() -> None:
    """Goal: at most 3 % above."""
    whole = instance("mix", 500, 50, 1)
    packing = Packing(())
    for tenth in range(1, 11):
        items = tuple(
            Item(item.name, -(-item.replicas * tenth // 10), item.needs) for item in whole.items
        )
        before, packing = packing, add(Problem(whole.places, items), packing)
        assert all(packing.at[one.item, one.place] >= one.replicas for one in before.placed)

    assert violations(whole, packing) == ()
    assert len(packing.used) <= 1.03 * bound(whole).places


@pytest.mark.parametrize("family", ["mix", "half"])
def test_a_fleet_that_has_turned_over_is_no_worse_than_best_fit_leaves_it(family: str) -> None:
    whole = instance(family, 150, 15, 0)
    places = []
    for placer in (best_fit, add):
        fleet = Turnover(whole, placer, 0)
        fleet.change(150)
        assert violations(fleet.problem, fleet.packing) == ()
        places.append(len(fleet.packing.used) / bound(fleet.problem).places)

    assert places[1] <= places[0]
