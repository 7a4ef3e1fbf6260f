from placement.problem import Item, Packing, Place, Placed, Problem
from placement.room import Room

PLACES = tuple(Place(f"p{n}", "gpu", f"h{n}", "a", (80, 20), 10, 1) for n in range(2))
CHAT = Item("chat", 3, {"gpu": (30, 5)})
PROBLEM = Problem(PLACES, (CHAT,))


def test_records_that_fit_are_kept_as_they_are() -> None:
    room = Room(PROBLEM)
    records = [Placed("chat", "p1", 1), Placed("chat", "p0", 2)]

    assert room.put_all(CHAT, records)
    assert room.packing("").placed == tuple(sorted(records))
    assert room.in_use == {"p0": (20, 10), "p1": (50, 15)}
    assert room.missing() == {}


def test_one_record_too_large_keeps_all_out() -> None:
    room = Room(PROBLEM)

    assert not room.put_all(CHAT, [Placed("chat", "p1", 1), Placed("chat", "p0", 3)])
    assert room.packing("") == Packing((), (("chat", 3),))


def test_another_replica_shows_in_the_record_of_its_place() -> None:
    room = Room(PROBLEM)
    room.put_all(CHAT, [Placed("chat", "p0", 1)])
    room.put(CHAT, PLACES[0], 1)

    assert room.packing("").placed == (Placed("chat", "p0", 2),)
    assert room.packing("").unplaced == (("chat", 1),)
