import random

from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.bands import BANDS
from modelyard.admission.shares import Demand, Share, alone, share_of, shares

counts = st.dictionaries(st.sampled_from(BANDS), st.integers(0, 60), max_size=3)
readings = st.lists(st.tuples(counts, counts), min_size=1, max_size=9).map(
    lambda several: [Demand(f"i{n}", *both) for n, both in enumerate(several)]
)


def wants(ingress: str, interactive: int = 0, batch: int = 0) -> Demand:
    return Demand(ingress, {"interactive": interactive}, {"batch": batch})


def total(demand: Demand) -> int:
    return sum(demand.by_rank())


def test_a_light_ingress_gets_what_it_asks_and_the_heavy_one_the_rest() -> None:
    assert shares(8, [wants("heavy", 50), wants("light", 2)]) == {"heavy": 6, "light": 2}


def test_what_nobody_asks_for_is_split_equally() -> None:
    assert shares(12, [wants("a", 4), wants("b")]) == {"a": 8, "b": 4}
    assert shares(3, [wants("a"), wants("b")]) == {"a": 2, "b": 1}


def test_a_high_band_is_served_first_wherever_it_is() -> None:
    assert shares(8, [wants("a", 0, 30), wants("b", 7, 0)]) == {"a": 1, "b": 7}
    assert shares(9, [wants("a", 3, 30), wants("b", 4, 30)]) == {"a": 4, "b": 5}


def test_one_alone_has_everything() -> None:
    assert shares(8, [wants("a")]) == {"a": 8}


def test_nobody_gets_a_slot_of_a_version_without_replicas() -> None:
    assert shares(0, [wants("a", 5), wants("b")]) == {"a": 0, "b": 0}
    assert alone(0, 3) == 0


def test_of_two_slots_three_that_ask_still_get_one_each() -> None:
    assert shares(2, [wants("a", 1), wants("b", 9), wants("c", 1)]) == {"a": 1, "b": 1, "c": 1}


def test_without_the_board_each_takes_its_part() -> None:
    assert alone(10, 3) == 3
    assert alone(2, 5) == 1
    assert alone(7, 0) == 7


@given(st.integers(1, 100), readings, st.integers(0, 1 << 30))
def test_everyone_comes_to_the_same_answer(capacity: int, demands: list[Demand], seed: int) -> None:
    shuffled = list(demands)
    random.Random(seed).shuffle(shuffled)
    assert shares(capacity, demands) == shares(capacity, shuffled)


@given(st.integers(1, 100), readings)
def test_the_capacity_is_given_out_and_one_to_each_that_asks(
    capacity: int, demands: list[Demand]
) -> None:
    parts = shares(capacity, demands)
    asking = [demand for demand in demands if total(demand)]
    assert sum(parts.values()) == max(capacity, len(asking))
    assert all(parts[demand.ingress] >= 1 for demand in asking)
    assert min(parts.values()) >= 0


@given(st.integers(1, 100), readings)
def test_nobody_lacks_while_another_has_too_much(capacity: int, demands: list[Demand]) -> None:
    parts = shares(capacity, demands)
    lacking = [d for d in demands if parts[d.ingress] < total(d)]
    if lacking and len(demands) <= capacity:
        # One slot above the demand may come of the rounding, or of the one that all get.
        assert all(parts[d.ingress] <= total(d) + 1 for d in demands)


@given(st.integers(1, 100), st.lists(st.integers(0, 60), min_size=2, max_size=8))
def test_in_one_band_it_is_max_min_within_a_slot(capacity: int, wanted: list[int]) -> None:
    parts = shares(capacity, [wants(f"i{n}", count) for n, count in enumerate(wanted)])
    got = [parts[f"i{n}"] for n in range(len(wanted))]
    for mine, count in zip(got, wanted, strict=True):
        if mine < count and len(wanted) <= capacity:
            assert mine >= max(got) - 1


def test_an_ingress_where_somebody_waits_may_be_one_slot_ahead() -> None:
    mine = Demand("a", {"interactive": 4}, {"interactive": 3})
    other = Demand("b", {"interactive": 4}, {"interactive": 9})
    assert share_of(8, mine, [other]) == Share(4, 4)
    assert share_of(8, other, [mine]) == Share(5, 4)  # of equals, where most waits
    assert share_of(80, mine, [other]) == Share(7 + (80 - 7 - 13) // 2 + 4, 40)
    assert share_of(8, Demand("a", {"interactive": 4}), [other]) == Share(4, 4)


def test_the_slot_ahead_is_for_the_one_that_runs_least() -> None:
    light, heavy = Demand("a", {"batch": 1}, {"batch": 1}), Demand("b", {"batch": 7}, {"batch": 9})
    assert share_of(8, light, [heavy]) == Share(2 + 1, 4)
    assert share_of(8, heavy, [light]) == Share(6, 6)


@given(st.integers(1, 100), readings)
def test_all_together_are_ahead_by_a_tenth_of_the_slots_however_many_wait(
    capacity: int, demands: list[Demand]
) -> None:
    parts = [
        share_of(capacity, own, [each for each in demands if each is not own]).slots
        for own in demands
    ]
    asking = sum(bool(total(demand)) for demand in demands)
    waiting = len(demands) > 1 and any(any(d.waiting.values()) for d in demands)
    ahead = max(1, capacity // 10) if waiting else 0
    assert sum(parts) == max(capacity, asking) + ahead


def test_alone_an_ingress_is_never_ahead_of_its_slots() -> None:
    mine = Demand("a", {"interactive": 8}, {"interactive": 3})
    assert share_of(8, mine, []) == Share(8, 8)
    assert share_of(0, mine, []) == Share(0, 0)


def test_an_ingress_that_asked_for_little_estimates_by_what_it_could_have() -> None:
    other = Demand("b", {"interactive": 8}, {"interactive": 9})
    assert share_of(8, Demand("a", {"interactive": 1}), [other]) == Share(1, 4)
