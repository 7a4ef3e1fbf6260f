from collections import Counter

import pytest

from placement.bounds import bound, proved
from placement.families import FAMILIES, instance
from placement.packing import pack, price_of
from placement.problem import Item, Place, Placed, Problem, Vector
from placement.valid import violations

GPU: Vector = (80_000, 20)


def device(name: str, host: str = "", zone: str = "a", price: int = 10, pool: str = "gpu") -> Place:
    return Place(name, pool, host or name, zone, GPU, price, 1)


def devices(count: int, per_host: int = 1, zone: str = "a") -> tuple[Place, ...]:
    return tuple(
        device(f"{zone}{index:02}", f"{zone}-host-{index // per_host}", zone)
        for index in range(count)
    )


def model(name: str, gigabytes: int, replicas: int = 1, priority: int = 0) -> Item:
    return Item(name, replicas, {"gpu": (gigabytes * 1000, 5)}, priority=priority)


def test_four_models_no_two_of_which_fit_one_device_need_four_devices() -> None:
    """Seed 000, Figure 7, each with its 6 GB of overhead: 97 GB would be free in sum."""
    items = tuple(model(name, gb) for name, gb in [("a", 51), ("b", 36), ("c", 56), ("d", 54)])
    three, four = Problem(devices(3), items), Problem(devices(4), items)

    assert bound(three).places == 4
    assert sum(count for _, count in pack(three).unplaced) == 1
    assert pack(four).unplaced == ()
    assert len(pack(four).used) == 4


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("seed", range(3))
def test_two_hundred_replicas_are_packed_in_as_few_places_as_is_proved_possible(
    family: str, seed: int
) -> None:
    problem = instance(family, 200, 20, seed)
    packing = pack(problem)

    assert violations(problem, packing) == ()
    assert proved(price_of(problem, packing), bound(problem))


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_thousand_replicas_of_100_models_are_at_most_half_a_percent_above_the_bound(
    family: str,
) -> None:
    problem = instance(family, 1000, 100, 7)
    packing = pack(problem)

    assert violations(problem, packing) == ()
    assert len(packing.used) <= 1.005 * bound(problem).places


def test_the_exact_path_beats_every_heuristic_where_few_models_fit_together() -> None:
    problem = instance("half", 300, 30, 0)

    assert price_of(problem, pack(problem)) < price_of(problem, pack(problem, exact=False))


def test_several_devices_of_one_machine_and_single_ones_share_machines_without_loss() -> None:
    machines = tuple(Place(f"m{n}", "whole", f"m{n}", "a", (8, 0), 80, 8) for n in range(6))
    items = tuple(
        Item(f"tp{size}", replicas, {"whole": (size, 0)})
        for size, replicas in [(8, 1), (4, 3), (2, 5), (1, 10)]
    )
    packing = pack(Problem(machines, items))

    assert packing.unplaced == ()
    assert len(packing.used) == 5


def test_the_cheaper_pool_is_taken_even_where_it_takes_more_places() -> None:
    large = tuple(device(f"large-{n}", price=100, pool="large") for n in range(2))
    small = tuple(Place(f"small-{n}", "small", f"s{n}", "a", (24_000, 20), 20, 1) for n in range(4))
    item = Item("chat", 4, {"large": (20_000, 5), "small": (20_000, 10)})
    packing = pack(Problem(large + small, (item,)))

    assert {place.split("-")[0] for place in packing.used} == {"small"}


def test_what_the_cheap_places_cannot_hold_goes_to_the_dear_ones() -> None:
    large = tuple(device(f"large-{n}", price=100, pool="large") for n in range(2))
    small = (Place("small-0", "small", "s0", "a", (24_000, 20), 20, 1),)
    item = Item("chat", 3, {"large": (40_000, 5), "small": (20_000, 10)})
    packing = pack(Problem(large + small, (item,)))

    assert packing.unplaced == ()
    assert len(packing.used) == 2
    assert packing.at["chat", "small-0"] == 1


def test_places_without_a_price_are_few() -> None:
    free = tuple(device(f"p{n}", price=0) for n in range(9))

    assert len(pack(Problem(free, (model("chat", 30, 8),))).used) == 4


def test_the_higher_priority_is_placed_where_there_is_not_enough_room() -> None:
    problem = Problem(devices(2), (model("a", 60, 2), model("b", 50, 1, priority=5)))
    packing = pack(problem)

    assert [one.item for one in packing.placed] == ["a", "b"]
    assert packing.unplaced == (("a", 1),)


def test_a_low_priority_still_gets_the_room_no_higher_one_can_use() -> None:
    items = (model("large", 79, 3, priority=9), model("small", 1, 5, priority=0))
    packing = pack(Problem(devices(2), items))

    assert packing.unplaced == (("large", 1), ("small", 3))


def test_what_fits_nowhere_is_unplaced_and_the_rest_is_not() -> None:
    packing = pack(Problem(devices(1), (model("huge", 81), model("chat", 30))))

    assert packing.placed == (Placed("chat", "a00", 1),)
    assert packing.unplaced == (("huge", 1),)


def test_nothing_to_place_needs_no_place() -> None:
    assert pack(Problem(devices(2), ())).used == frozenset()
    assert pack(Problem((), (model("chat", 30),))).unplaced == (("chat", 1),)


def test_a_cap_per_zone_is_met_with_the_last_replica_there_is_room_for() -> None:
    places = sum((devices(4, zone=zone) for zone in "abc"), ())
    item = Item("chat", 12, {"gpu": (60_000, 5)}, per_zone=4)
    packing = pack(Problem(places, (item,)))

    zones = Counter(name[0] for name in packing.used)
    assert zones == {"a": 4, "b": 4, "c": 4}


def test_a_cap_per_host_counts_the_devices_of_a_machine_together() -> None:
    items = tuple(Item(f"m{n}", 4, {"gpu": (20_000, 5)}, per_host=1) for n in range(8))
    problem = Problem(devices(32, per_host=8), items)
    packing = pack(problem)

    assert violations(problem, packing) == ()
    assert packing.unplaced == ()
    assert len(packing.used) == bound(problem).places == 8


def test_a_spread_over_zones_and_hosts_costs_no_place_more_than_the_bound() -> None:
    places = sum((devices(64, per_host=8, zone=zone) for zone in "abc"), ())
    problem = Problem(
        places,
        tuple(
            Item(f"m{n:02}", 6, {"gpu": (gb * 1000, 4)}, per_host=1, per_zone=2)
            for n, gb in enumerate([16, 24, 32, 40, 48, 16, 24, 32, 40, 8])
        ),
    )
    packing = pack(problem)

    assert violations(problem, packing) == ()
    assert packing.unplaced == ()
    assert len(packing.used) <= bound(problem).places + 2  # a zone's last place may be half empty


def test_what_is_too_large_for_all_places_does_not_make_the_others_greedy() -> None:
    places = (device("a", price=1, pool="a"), device("b", price=3, pool="b"))
    need = {"a": (60_000, 5), "b": (60_000, 5)}
    items = (
        Item("huge", 1, {"a": (90_000, 5)}, priority=9),
        Item("high", 1, need, priority=5),
        Item("low", 1, {"a": (60_000, 5)}),
    )
    packing = pack(Problem(places, items))

    assert packing.at == {("high", "b"): 1, ("low", "a"): 1}
    assert packing.unplaced == (("huge", 1),)
    assert violations(Problem(places, items), packing) == ()
