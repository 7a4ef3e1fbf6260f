from placement.components import components
from placement.grouped import grouped
from placement.problem import Item, Place, Problem
from placement.zone_shares import parts_of


def place(name: str, zone: str = "a", pool: str = "gpu") -> Place:
    return Place(name, pool, name, zone, (80, 20), 1, 1)


def test_equal_models_are_one_type_and_equal_places_one_kind() -> None:
    items = (Item("a", 3, {"gpu": (10, 1)}), Item("b", 4, {"gpu": (10, 1)}))
    groups = grouped(Problem((place("p0"), place("p1", "b")), items), by_zone=True)

    assert [type_.replicas for type_ in groups.types] == [7]
    assert [kind.supply for kind in groups.kinds] == [2]


def test_a_zone_that_a_model_must_be_in_is_a_kind_of_its_own() -> None:
    items = (Item("a", 3, {"gpu": (10, 1)}, zones=frozenset("a")), Item("b", 4, {"gpu": (9, 1)}))
    groups = grouped(Problem((place("p0"), place("p1", "b")), items), by_zone=True)

    assert len(groups.kinds) == 2


def test_what_fits_no_place_is_named() -> None:
    groups = grouped(Problem((place("p0"),), (Item("a", 2, {"gpu": (81, 1)}),)), by_zone=True)

    assert groups.types == ()
    assert groups.nowhere == (("a", 2),)


def test_a_cap_per_zone_deals_the_replicas_out_evenly() -> None:
    item = Item("a", 10, {"gpu": (10, 1)}, per_zone=4)
    parts = parts_of(item, ((10, 1),) * 3, ("a", "b", "c"), (9, 9, 9), by_zone=True)

    assert sorted(part.replicas for part in parts) == [3, 3, 4]


def test_more_than_the_caps_of_all_zones_are_left_out() -> None:
    item = Item("a", 10, {"gpu": (10, 1)}, per_zone=2)
    parts = parts_of(item, ((10, 1),) * 3, ("a", "b", "c"), (9, 9, 9), by_zone=True)

    assert sum(part.replicas for part in parts) == 6


def test_pools_that_share_no_model_are_components() -> None:
    places = (place("p0"), place("p1", pool="cpu"), place("p2", pool="old"))
    apart = (Item("a", 1, {"gpu": (10, 1)}), Item("b", 1, {"cpu": (10, 1), "old": (9, 1)}))
    groups = grouped(Problem(places, apart), by_zone=True)
    joined = grouped(
        Problem(places, (*apart, Item("c", 1, {"gpu": (1, 1), "old": (1, 1)}))), by_zone=True
    )

    assert len(components(groups.kinds, groups.types)) == 2
    assert len(components(joined.kinds, joined.types)) == 1


def test_a_zone_with_twice_the_room_gets_twice_the_replicas() -> None:
    for name in "abcdefgh":
        item = Item(name, 3, {"gpu": (10, 1)}, per_zone=2)
        parts = parts_of(item, ((10, 1),) * 2, ("a", "b"), (2, 4), by_zone=True)

        assert [part.replicas for part in parts] == [1, 2]


def test_a_cap_that_all_replicas_keep_in_one_zone_deals_nothing_out() -> None:
    item = Item("a", 2, {"gpu": (10, 1)}, per_zone=2)

    assert len(parts_of(item, ((10, 1),) * 2, ("a", "b"), (2, 4), by_zone=True)) == 1
