"""Evidence that a rate is above another by more than the margin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.rollout.events import Events
from modelyard.rollout.margin import ENOUGH, Floats, log_margin, rates_of, tallies_of
from modelyard.rollout.strata import Strata


def tallies(control: float, canary: float, asked: float, weight: float) -> Floats:
    """Of all requests: failed of each arm (shares), at that weight."""
    n, m = asked * weight, asked * (1 - weight)
    strata = Strata(())
    shares = np.full(strata.count, weight)
    counts = np.zeros((4, strata.count))
    counts[:, 0] = m * control, n * canary, m, n
    result: Floats = tallies_of(Events(*counts), shares, strata)[0]
    return result


@pytest.mark.parametrize("weight", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("canary", [0.0, 0.01, 0.013, 0.015])
def test_inside_the_margin_it_falls_however_much_is_asked(weight: float, canary: float) -> None:
    logs = [
        float(log_margin(tallies(0.01, canary, asked, weight), 0.005)) for asked in (1e4, 1e5, 1e6)
    ]
    assert logs[0] > logs[1] > logs[2]
    assert logs[0] < 0


@pytest.mark.parametrize("weight", [0.01, 0.05, 0.5])
def test_beyond_the_margin_it_rises(weight: float) -> None:
    logs = [
        float(log_margin(tallies(0.01, 0.03, canary / weight, weight), 0.005))
        for canary in (2000, 4000, 8000)
    ]
    assert ENOUGH < logs[0] < logs[1] < logs[2]


def test_a_control_arm_without_a_failure_is_no_proof_by_itself() -> None:
    few = np.array([1.0, 40.0, 0.0, 40.0, 40.0])
    many = np.array([20.0, 500.0, 0.0, 500.0, 500.0])
    assert float(log_margin(few, 0.005)) < ENOUGH < float(log_margin(many, 0.005))


def test_an_hour_of_trouble_in_a_large_step_is_not_the_canarys_own() -> None:
    """The canary had most of its requests then, the control arm few: both 30 %, else 1 %."""
    quiet, trouble = tallies(0.01, 0.01, 1e5, 0.01), tallies(0.3, 0.3, 1e4, 0.5)
    both = quiet + trouble
    stable, canary = rates_of(tuple(both.tolist()))
    assert stable == pytest.approx(canary)
    assert float(log_margin(both, 0.005)) < 0


@given(counts=st.tuples(*(st.integers(0, 10_000) for _ in range(4))), share=st.floats(0.001, 1.0))
@settings(max_examples=100, deadline=None)
def test_any_counts_have_a_finite_logarithm(
    counts: tuple[int, int, int, int], share: float
) -> None:
    x, n, y, m = counts
    strata = Strata(())
    by_stratum = np.zeros((4, strata.count))
    by_stratum[:, 0] = min(y, m), min(x, n), m, n
    each = tallies_of(Events(*by_stratum), np.full(strata.count, share), strata)
    assert all(math.isfinite(one) for one in log_margin(each, 0.005).tolist())
