import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.bound import MARGIN_CAP, PART, margin_s, part_of, queue_bound, slack_s
from modelyard.admission.service_times import Spread


def test_a_part_of_what_drains_within_the_slack_may_wait() -> None:
    assert queue_bound(20.0, 5.0) == round(PART * 100)


@pytest.mark.parametrize(("rate", "slack_s"), [(0.0, 5.0), (20.0, 0.0), (20.0, -3.0), (0.01, 1.0)])
def test_one_may_always_wait(rate: float, slack_s: float) -> None:
    assert queue_bound(rate, slack_s) == 1


def test_a_limit_of_the_fleet_is_split_by_shares() -> None:
    assert part_of(100, 3, 12) == 25
    assert part_of(10, 1, 3) == 4
    assert part_of(0, 4, 8) == 0


def test_without_any_capacity_each_ingress_has_the_whole_limit() -> None:
    assert part_of(100, 0, 0) == 100


@given(st.integers(1, 10_000), st.lists(st.integers(1, 50), min_size=1, max_size=10))
def test_the_parts_exceed_a_limit_by_less_than_one_for_each_ingress(
    limit: int, shares: list[int]
) -> None:
    parts = [part_of(limit, share, sum(shares)) for share in shares]
    assert min(parts) >= 1
    assert limit <= sum(parts) < limit + len(shares)


def test_a_share_above_the_capacity_gets_no_more_than_the_limit() -> None:
    assert part_of(10, 3, 2) == 10


def test_a_request_keeps_back_what_most_need_from_start_to_first_item() -> None:
    assert margin_s(Spread(0.3, 0.5), 10.0) == 0.5
    assert margin_s(None, 10.0) == 0.0


def test_slow_answers_never_take_all_of_its_time() -> None:
    assert margin_s(Spread(3.0, 500.0), 10.0) == 10.0 * MARGIN_CAP


def test_others_may_be_before_it_for_what_it_does_not_need_itself() -> None:
    assert slack_s(None, 10.0) == 10.0
    assert slack_s(Spread(0.3, 0.5), 10.0) == 9.5
    assert slack_s(Spread(5.0, 500.0), 10.0) == 10.0 - 10.0 * MARGIN_CAP


def test_where_most_need_nearly_all_of_its_time_one_may_wait() -> None:
    slacks = [slack_s(Spread(p80, 20.0), 10.0) for p80 in (6.0, 7.0, 8.0, 9.0, 12.0)]
    assert slacks == [4.0, 3.0, 2.0, 1.0, -2.0]
    assert queue_bound(5.0, slacks[-1]) == 1
