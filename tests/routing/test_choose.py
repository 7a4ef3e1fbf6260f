import collections
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from modelyard.routing.choose import (
    BALANCE,
    FREE,
    STALE_S,
    Candidate,
    Choice,
    choose,
    weighted_hash,
)

KEYS = st.text(min_size=1, max_size=20)
NAMES = [f"replica-{n}" for n in range(8)]


@st.composite
def fleets(draw: st.DrawFn) -> list[Candidate]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8, unique=True))
    return [
        Candidate(
            name,
            draw(st.integers(0, 50)),
            draw(st.integers(1, 40)),
            draw(st.sampled_from([0.0, 1.0, STALE_S, 60.0])),
        )
        for name in names
    ]


def idle(count: int, capacity: float = 24) -> list[Candidate]:
    return [Candidate(name, 0, capacity) for name in NAMES[:count]]


def chosen(candidates: list[Candidate], key: str, seed: int = 0) -> Candidate:
    return candidates[choose(candidates, key, Random(seed)).chosen]


@given(fleets(), KEYS, st.integers(), st.integers(), st.randoms())
def test_a_key_decides_alone_whatever_the_order_and_the_draw(
    fleet: list[Candidate], key: str, one: int, other: int, shuffler: Random
) -> None:
    loads = [candidate.load / candidate.capacity for candidate in fleet]
    assume(len(set(loads)) == len(loads))  # between equals the first of the list is taken
    again = list(fleet)
    shuffler.shuffle(again)
    assert chosen(fleet, key, one) == chosen(again, key, other)


@given(fleets(), KEYS | st.just(""), st.integers())
def test_nothing_stale_or_full_is_chosen_while_something_else_is_there(
    fleet: list[Candidate], key: str, seed: int
) -> None:
    found = chosen(fleet, key, seed)
    fresh = [one for one in fleet if one.age_s < STALE_S]
    with_room = [one for one in fresh if one.load < one.capacity]
    assert found in (with_room or fresh or fleet)


@given(fleets(), KEYS, st.integers())
def test_affinity_is_bounded_by_load(fleet: list[Candidate], key: str, seed: int) -> None:
    found = chosen(fleet, key, seed)
    fresh = [one for one in fleet if one.age_s < STALE_S]
    assume([one for one in fresh if one.load < one.capacity])
    load, capacity = sum(one.load for one in fresh), sum(one.capacity for one in fresh)
    bound = max(FREE, BALANCE * (load + 1) / capacity)
    least = min(one.load / one.capacity for one in fresh)
    assert found.load / found.capacity < bound or found.load / found.capacity == least


@settings(max_examples=30)
@given(st.integers(2, 8), st.integers(0, 7))
def test_only_the_keys_of_a_candidate_that_leaves_move(count: int, gone: int) -> None:
    before = idle(count)
    leaving = before[gone % count]
    after = [one for one in before if one != leaving]
    for key in map(str, range(100)):
        kept = chosen(before, key)
        if kept != leaving:
            assert chosen(after, key) == kept


def test_keys_are_shared_out_by_capacity() -> None:
    fleet = [Candidate("small", 0, 8), Candidate("middle", 0, 16), Candidate("large", 0, 40)]
    counts = collections.Counter(chosen(fleet, f"k{n}").id for n in range(6400))
    for one in fleet:
        assert counts[one.id] == pytest.approx(100 * one.capacity, rel=0.15)


def test_a_hot_key_warms_one_more_and_always_the_same() -> None:
    fleet = idle(6)
    preferred = choose(fleet, "hot", Random(0)).chosen
    fleet[preferred] = fleet[preferred]._replace(load=12)
    spilled = {choose(fleet, "hot", Random(seed)) for seed in range(20)}
    assert len(spilled) == 1
    (choice,) = spilled
    assert choice.spilled
    assert choice.preferred == preferred
    order = sorted(fleet, key=lambda one: -weighted_hash("hot", one.id, one.capacity))
    assert fleet[choice.chosen] == order[1]


def test_after_two_the_least_used_takes_what_is_left() -> None:
    fleet = idle(6)
    order = sorted(range(6), key=lambda n: -weighted_hash("hot", NAMES[n], 24))
    for n in range(6):
        fleet[n] = fleet[n]._replace(load=2)
    for n in order[:2]:
        fleet[n] = fleet[n]._replace(load=20)
    least = order[-1]
    fleet[least] = fleet[least]._replace(load=1)
    assert choose(fleet, "hot", Random(0)) == Choice(least, order[0])


def test_without_a_key_the_less_used_of_two_is_taken() -> None:
    fleet = [one._replace(load=n) for n, one in enumerate(idle(6))]
    counts = collections.Counter(choose(fleet, "", Random(n)).chosen for n in range(3000))
    # The least used wins each of its draws, a third; the most used wins none.
    assert counts[0] == pytest.approx(1000, rel=0.15)
    assert counts[5] == 0


def test_two_that_are_equal_share() -> None:
    counts = collections.Counter(choose(idle(2), "", Random(n)).chosen for n in range(1000))
    assert min(counts.values()) > 400


def test_on_a_quiet_fleet_a_burst_of_one_key_stays_together() -> None:
    fleet = idle(6)
    first = choose(fleet, "k", Random(0)).chosen
    for load in range(int(FREE * 24)):
        fleet[first] = fleet[first]._replace(load=load)
        assert choose(fleet, "k", Random(0)).chosen == first


def test_nobody_to_choose_is_an_error() -> None:
    with pytest.raises(ValueError, match="needs a candidate"):
        choose([], "k", Random(0))


@given(KEYS, KEYS, st.floats(0, 1e6))
def test_a_score_is_a_positive_number(key: str, name: str, weight: float) -> None:
    assert 0 < weighted_hash(key, name, weight) < float("inf")
