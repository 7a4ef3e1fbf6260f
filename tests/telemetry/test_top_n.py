from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.telemetry.top_n import CANDIDATES_MAX, OTHER, TopN


def test_the_first_names_are_shown_and_the_rest_are_one() -> None:
    top = TopN(2, now=0.0)
    for name in ("a", "b", "c", "d"):
        top.add(name, (1, 10))
    assert top.amounts() == {"a": (1, 10), "b": (1, 10), OTHER: (2, 20)}


def test_without_others_there_is_no_other() -> None:
    top = TopN(2, now=0.0)
    top.add("a", (1, 1))
    assert top.amounts() == {"a": (1, 1)}


def test_a_newcomer_twice_as_large_takes_the_place_of_the_smallest() -> None:
    top = TopN(2, now=0.0)
    for name, used in (("a", 10), ("b", 100), ("c", 30)):
        top.add(name, (used,))
    top.review(60.0)
    top.add("a", (1,))
    top.add("c", (5,))
    assert top.amounts() == {"b": (100,), "c": (5,), OTHER: (31,)}


def test_equals_do_not_swap() -> None:
    top = TopN(1, now=0.0)
    top.add("a", (10,))
    top.add("b", (20,))
    top.review(60.0)
    assert set(top.amounts()) == {"a", OTHER}


def test_names_are_reviewed_once_a_minute() -> None:
    top = TopN(1, now=0.0)
    top.add("a", (1,))
    top.add("b", (100,))
    top.review(59.0)
    assert set(top.amounts()) == {"a", OTHER}
    top.review(60.0)
    top.add("b", (1,))
    assert set(top.amounts()) == {"b", OTHER}


def test_names_without_end_take_no_room_without_end() -> None:
    top = TopN(1, now=0.0)
    for number in range(CANDIDATES_MAX + 10):
        top.add(f"t{number}", (1,))
    assert len(top._recent) == CANDIDATES_MAX
    assert top.amounts() == {"t0": (1,), OTHER: (CANDIDATES_MAX + 9,)}


@settings(max_examples=100)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 1000), st.booleans())))
def test_no_series_that_stays_ever_falls(steps: list[tuple[str, int, bool]]) -> None:
    top, now = TopN(2, now=0.0), 0.0
    before: dict[str, tuple[int, ...]] = {}
    for name, used, review in steps:
        top.add(name, (used,))
        if review:
            now += 60.0
            top.review(now)
        after = top.amounts()
        assert len(after) <= 3
        for shown in after.keys() & before.keys():
            assert after[shown] >= before[shown]
        before = after
