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


def test_until_every_other_was_heard_an_ingress_grows_to_its_fair_part_alone() -> None:
    mine, idle = Demand("a", {}, {"interactive": 9}), Demand("b")
    assert share_of(8, mine, [idle], 4, heard=False) == Share(4, 4)
    assert share_of(8, mine, [idle], 2, heard=False) == Share(4, 4)
    assert share_of(8, mine, [idle], 6, heard=False) == Share(6, 6)
    assert share_of(8, mine, [idle], 4) == Share(8, 8)
    assert share_of(8, mine, [], 0) == Share(8, 8)


def test_a_share_shrinks_whoever_was_heard() -> None:
    mine, heavy = Demand("a", {"batch": 2}), Demand("b", {"interactive": 6}, {"interactive": 9})
    assert share_of(8, mine, [heavy], 7, heard=False).slots == 1


@given(st.integers(1, 100), readings, st.data())
def test_unheard_ingresses_never_take_more_than_they_had_or_their_fair_part(
    capacity: int, demands: list[Demand], data: st.DataObject
) -> None:
    for own in demands:
        before = data.draw(st.integers(0, capacity))
        others = [each for each in demands if each is not own]
        slots = share_of(capacity, own, others, before, heard=False).slots
        assert slots <= max(before, capacity // len(demands), 1)
        assert slots <= share_of(capacity, own, others).slots


def test_an_ingress_that_asked_for_little_estimates_by_what_it_could_have() -> None:
    other = Demand("b", {"interactive": 8}, {"interactive": 9})
    assert share_of(8, Demand("a", {"interactive": 1}), [other]) == Share(1, 4)
