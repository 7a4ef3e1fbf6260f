"""Small problems by an integer program over names: caps that meet, and proofs that nothing fits."""

from collections import Counter
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from placement.by_name import by_name
from placement.packing import pack, price_of
from placement.problem import Item, Place, Problem
from placement.valid import violations
from tests.placement.test_packing_properties import cheapest, problems


def planted(random: Random) -> Problem:
    """Items with the caps that one way to place them has, so that there is such a way."""
    places = tuple(
        Place(f"p{n}", "gpu", f"h{n // 2}", random.choice("ab"), (80, 20), 10, 1) for n in range(6)
    )
    free = {place.name: 80 for place in places}
    items = []
    for number in range(random.randint(2, 6)):
        need, hosts, zones = random.randint(15, 45), Counter[str](), Counter[str]()
        for place in random.sample(places, 4):
            if free[place.name] >= need:
                free[place.name] -= need
                hosts[place.host] += 1
                zones[place.zone] += 1
        if hosts:
            caps = max(hosts.values()), max(zones.values())
            items.append(Item(f"i{number}", hosts.total(), {"gpu": (need, 1)}, None, *caps))
    return Problem(places, tuple(items))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_a_fleet_with_caps_that_fits_is_packed(seed: int) -> None:
    problem = planted(Random(seed))
    packing = pack(problem)

    assert packing.unplaced == ()
    assert violations(problem, packing) == ()


@settings(max_examples=40, deadline=None)
@given(problems)
def test_it_finds_a_cheap_packing_where_there_is_one_and_calls_no_other_impossible(
    problem: Problem,
) -> None:
    best, verdict = cheapest(problem), by_name(problem)

    if not any(item.replicas for item in problem.items):
        return
    if best is None:
        assert verdict.packing is None
    else:
        assert not verdict.impossible
        assert verdict.packing is not None
        assert violations(problem, verdict.packing) == ()
        assert price_of(problem, verdict.packing) <= 1.02 * best[0]


def test_what_is_too_many_for_it_is_not_called_impossible() -> None:
    place = Place("p", "gpu", "h", "a", (80, 20), 10, 1)
    verdict = by_name(Problem((place,), (Item("a", 301, {"gpu": (1, 0)}),)))

    assert verdict.packing is None
    assert not verdict.impossible
