"""Tiny fleets with several pools, zones, machines of several places and caps, against every way
there is to place all."""

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.bounds import bound
from placement.online import add
from placement.packing import pack, price_of
from placement.problem import Item, Packing, Place, Problem, Vector
from placement.valid import violations

SIZES: dict[str, Vector] = {"shared": (8, 10), "whole": (4, 0), "cpu": (16, 8)}
PRICES = {"shared": 10, "whole": 25, "cpu": 3}


@st.composite
def places(draw: st.DrawFn) -> Place:
    pool = draw(st.sampled_from(sorted(SIZES)))
    zone = draw(st.sampled_from("ab"))
    host = f"{pool}-{zone}-{draw(st.integers(0, 1))}"
    price = PRICES[pool] + (zone == "b")
    return Place("", pool, host, zone, SIZES[pool], price, int(pool != "cpu"))


@st.composite
def items(draw: st.DrawFn) -> Item:
    needs: dict[str, Vector] = {}
    if draw(st.booleans()):
        needs["shared"] = draw(st.integers(1, 9)), draw(st.integers(0, 10))
    if draw(st.booleans()):
        needs["whole"] = draw(st.sampled_from([1, 2, 4])), 0
    if draw(st.booleans()) or not needs:
        needs["cpu"] = draw(st.integers(1, 16)), draw(st.integers(1, 8))
    return Item(
        "",
        draw(st.integers(0, 3)),
        needs,
        draw(st.sampled_from([None, None, frozenset("a"), frozenset("ab")])),
        draw(st.sampled_from([None, None, 1, 2])),
        draw(st.sampled_from([None, None, 1, 2])),
        draw(st.integers(0, 1)),
    )


def named(own: list[Place], asked: list[Item]) -> Problem:
    return Problem(
        tuple(replace(place, name=f"p{index}") for index, place in enumerate(own)),
        tuple(replace(item, name=f"i{index}") for index, item in enumerate(asked)),
    )


problems = st.builds(
    named, st.lists(places(), min_size=1, max_size=5), st.lists(items(), max_size=3)
)


def cheapest(problem: Problem) -> tuple[int, int] | None:
    """The least price of all packings of everything, and the least number of places; None where
    there is no packing. By trying every place for every replica."""
    replicas = [item for item in problem.items for _ in range(item.replicas)]
    free = {place.name: place.size for place in problem.places}
    counts: Counter[tuple[str, str, str]] = Counter()
    found: list[tuple[int, int]] = []

    def deal(index: int, used: frozenset[str]) -> None:
        if index == len(replicas):
            found.append((sum(problem.place[name].price for name in used), len(used)))
            return
        item = replicas[index]
        for place in problem.places:
            need = item.need_at(place)
            before = free[place.name]
            host, zone = (item.name, "host", place.host), (item.name, "zone", place.zone)
            if need is None or need[0] > before[0] or need[1] > before[1]:
                continue
            if item.per_host is not None and counts[host] >= item.per_host:
                continue
            if item.per_zone is not None and counts[zone] >= item.per_zone:
                continue
            free[place.name] = before[0] - need[0], before[1] - need[1]
            counts.update([host, zone])
            deal(index + 1, used | {place.name})
            counts.subtract([host, zone])
            free[place.name] = before

    deal(0, frozenset())
    return (min(price for price, _ in found), min(n for _, n in found)) if found else None


@settings(max_examples=60, deadline=None)
@given(problems)
def test_every_answer_keeps_every_rule(problem: Problem) -> None:
    for packing in (pack(problem), pack(problem, exact=False), add(problem, Packing(()))):
        assert violations(problem, packing) == ()


@settings(max_examples=60, deadline=None)
@given(problems)
def test_no_packing_of_all_is_below_the_bound(problem: Problem) -> None:
    least, rough = bound(problem), bound(problem, exact=False)
    best = cheapest(problem)

    assert rough.price <= least.price
    assert rough.places <= least.places
    if best is not None:
        assert least.price <= best[0]
        assert least.places <= best[1]


@settings(max_examples=60, deadline=None)
@given(problems)
def test_all_is_placed_where_it_can_be_and_something_left_where_it_cannot(problem: Problem) -> None:
    """Packing is hard in general; fifteen hundred fleets as small as these were all solved."""
    assert bool(pack(problem).unplaced) == (cheapest(problem) is None)


@settings(max_examples=30, deadline=None)
@given(problems, st.randoms(use_true_random=False))
def test_the_order_of_places_and_items_does_not_matter(problem: Problem, random: Random) -> None:
    other = Problem(
        tuple(random.sample(problem.places, len(problem.places))),
        tuple(random.sample(problem.items, len(problem.items))),
    )

    assert pack(other) == pack(problem)
    assert add(other, Packing(())) == add(problem, Packing(()))
    assert bound(other) == bound(problem)


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(0, 2))
def test_an_addition_moves_nothing(problem: Problem, asked: int) -> None:
    """More replicas are asked for, and the first place is lost."""
    before = Problem(
        problem.places,
        tuple(replace(item, replicas=min(asked, item.replicas)) for item in problem.items),
    )
    fixed = pack(before, exact=False)
    after = add(Problem(problem.places[1:], problem.items), fixed)

    for one in fixed.placed:
        if one.place != problem.places[0].name:
            assert after.at[one.item, one.place] >= one.replicas


@settings(max_examples=60, deadline=None)
@given(problems, st.integers(0, 2))
def test_with_fewer_replicas_some_go_and_none_moves(problem: Problem, asked: int) -> None:
    fixed = pack(problem, exact=False)
    fewer = Problem(
        problem.places,
        tuple(replace(item, replicas=min(asked, item.replicas)) for item in problem.items),
    )
    after = add(fewer, fixed)

    if not fixed.unplaced:
        assert not after.unplaced
        assert all(fixed.at[one.item, one.place] >= one.replicas for one in after.placed)


@settings(max_examples=60, deadline=None)
@given(problems)
def test_our_packing_is_never_below_the_bound(problem: Problem) -> None:
    packing, least = pack(problem), bound(problem)

    if not packing.unplaced:
        assert price_of(problem, packing) >= least.price
        assert len(packing.used) >= least.places
