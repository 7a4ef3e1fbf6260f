from __future__ import annotations

import pytest

from modelyard.control.ingress_post import Wish
from modelyard.ingress.demand import Demand


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def a() -> str:
    return "a@1"


def test_requests_count_while_they_are_under_way() -> None:
    demand = Demand(Clock())
    with demand.under_way(a), demand.under_way(lambda: "b@1"), demand.under_way(a):
        assert demand.in_flight == (("a@1", 2), ("b@1", 1))
    assert not demand.in_flight


def test_a_request_that_fails_counts_no_longer() -> None:
    demand = Demand(Clock())
    with pytest.raises(ValueError, match="gone"), demand.under_way(a):
        raise ValueError("gone")
    assert not demand.in_flight


def test_a_request_that_goes_to_another_version_counts_there() -> None:
    demand, target = Demand(Clock()), ["a@1"]
    with demand.under_way(lambda: target[0]):
        demand.moved("a@1", "b@1")
        target[0] = "b@1"
        assert demand.in_flight == (("b@1", 1),)
    assert not demand.in_flight


def test_a_wish_runs_out() -> None:
    clock = Clock()
    demand = Demand(clock)
    demand.wish("a@1", 8.0)
    clock.now_s += 5.0
    assert demand.wishes == (Wish("a@1", 1, 3.0),)
    clock.now_s += 3.0
    assert not demand.wishes


def test_a_wish_is_made_longer_and_never_shorter() -> None:
    clock = Clock()
    demand = Demand(clock)
    demand.wish("a@1", 8.0)
    demand.wish("a@1", 2.0)
    assert demand.wishes == (Wish("a@1", 1, 8.0),)
    demand.wish("a@1", 9.0)
    assert demand.wishes == (Wish("a@1", 1, 9.0),)
