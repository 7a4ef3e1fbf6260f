"""Exact intervals, against published figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.simulate.rollout import Ending
from modelyard.simulate.rollout_bounds import median_interval, share_interval
from modelyard.simulate.rollout_share import Goal, share_of, within, worst


@pytest.mark.parametrize(
    ("happened", "runs", "interval"),
    [
        (0, 10, (0.0, 0.3085)),  # 1 - 0.025 ** (1 / 10)
        (10, 10, (0.6915, 1.0)),
        (1, 10, (0.0025, 0.4450)),
        (5, 10, (0.1871, 0.8129)),
        (0, 3700, (0.0, 0.000997)),
        (8, 2000, (0.00173, 0.00787)),
    ],
)
def test_the_interval_of_a_share_is_that_of_clopper_and_pearson(
    happened: int, runs: int, interval: tuple[float, float]
) -> None:
    assert share_interval(happened, runs) == pytest.approx(interval, abs=6e-5)


@given(st.integers(1, 400).flatmap(lambda runs: st.tuples(st.integers(0, runs), st.just(runs))))
def test_the_interval_holds_the_share_and_mirrors_its_complement(counted: tuple[int, int]) -> None:
    happened, runs = counted
    low, high = share_interval(happened, runs)
    assert low <= happened / runs <= high
    assert share_interval(runs - happened, runs) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_the_medians_interval_is_of_ranks() -> None:
    assert median_interval([float(one) for one in range(1, 101)]) == (40.0, 61.0)
    assert median_interval([1.0, 2.0, 3.0]) == (0.0, math.inf)
    assert median_interval([*[1.0] * 50, *[math.inf] * 50])[1] == math.inf


def test_a_goal_is_met_or_missed_by_its_bound_and_else_not_shown() -> None:
    assert within((0.0, 0.009), 0.0, 0.01) == "met"
    assert within((0.0, 0.02), 0.0, 0.01) == "not shown"
    assert within((0.011, 0.02), 0.0, 0.01) == "missed"
    assert [worst([]), worst(["met", "not shown"]), worst(["not shown", "missed", "met"])] == [
        "met",
        "not shown",
        "missed",
    ]


def test_who_is_never_rolled_back_counts_in_the_median() -> None:
    back = Ending("rolled_back", "errors", 60.0)
    passed = Ending("passed", "", 1200.0)
    goal = Goal(median_s=300.0)
    assert goal.says(share_of([back] * 100)) == "met"
    assert goal.says(share_of([back] * 50 + [passed] * 50)) == "not shown"
    assert goal.says(share_of([back] * 20 + [passed] * 80)) == "missed"
