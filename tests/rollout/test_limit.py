"""The absolute limit of a canary."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.rollout.budget import log_threshold
from modelyard.rollout.events import Events
from modelyard.rollout.limit import Limit

REACHED = log_threshold("limit_errors")


def begun(limit: float = 0.05) -> Limit:
    one = Limit(limit)
    one.begin_window(0.0)
    return one


def take(limit: Limit, control: int, canary: int, others: int, weight: float) -> None:
    """A block of its own: a minute has gone by when the window ends."""
    counts = (control, canary, 50 * control, canary + others)
    events = Events(*(np.array([float(count)]) for count in counts))
    limit.take(events, np.array([weight]), weight, 0.0)
    limit.take(Events(*np.zeros((4, 1))), np.array([weight]), weight, 60.0)


def log_e(limit: Limit) -> float:
    return limit.against(REACHED).log_e


@given(
    control=st.lists(st.integers(0, 6), min_size=6, max_size=6),
    weight=st.floats(0.01, 1),
    limit=st.floats(0.01, 0.6),
)
@settings(max_examples=30, deadline=None)
def test_a_canary_at_its_limit_gives_no_expected_evidence(
    control: list[int], weight: float, limit: float
) -> None:
    mean = 0.0
    for failed in product((0, 1), repeat=6):
        one = begun(limit)
        for batch in range(3):
            canary = failed[2 * batch] + failed[2 * batch + 1]
            take(one, control[batch], canary, 2 - canary, weight)
        chance = math.prod(limit if each else 1 - limit for each in failed)
        mean += chance * math.exp(log_e(one))
    assert mean <= 1 + 1e-9


@given(weight=st.floats(0.01, 0.95), others=st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_beyond_its_limit_with_the_control_arm_gives_no_expected_evidence(
    weight: float, others: int
) -> None:
    """Every request fails, on whichever arm it is drawn to."""
    mean = 0.0
    for arms in product((0, 1), repeat=8):
        one = begun()
        for batch in (arms[:4], arms[4:]):
            take(one, 4 - sum(batch), sum(batch), others, weight)
        chance = math.prod(weight if arm else 1 - weight for arm in arms)
        mean += chance * math.exp(log_e(one))
    assert mean <= 1 + 1e-9


@pytest.mark.parametrize("weight", [0.05, 0.25, 0.5])
def test_an_incident_on_both_arms_does_not_reach_it(weight: float) -> None:
    one = begun()
    for _ in range(180):
        take(one, round(1200 * (1 - weight)), round(1200 * weight), 2800, weight)
    assert log_e(one) < 0


@pytest.mark.parametrize("weight", [0.01, 0.05, 0.25, 0.5, 0.9, 1.0])
def test_a_canary_that_fails_by_itself_reaches_it(weight: float) -> None:
    """30 % of its requests, and 1 % of the control arm's."""
    one, control = begun(), 0.0
    for _ in range(200):
        control += 0.01 * 10 * (1 - weight) / weight
        take(one, int(control), 3, 7, weight)
        control -= int(control)
    assert log_e(one) > REACHED


def test_without_a_control_arm_an_incident_reaches_it() -> None:
    one = begun()
    for _ in range(10):
        take(one, 0, 12, 28, 1.0)
    assert log_e(one) > REACHED


def test_no_limit_never_fails() -> None:
    one = begun(1.0)
    take(one, 0, 1000, 0, 1.0)
    assert log_e(one) < REACHED


def test_small_batches_are_taken_together() -> None:
    """One request at a time the smaller factor would nearly always be the one that lowers."""
    rng = np.random.default_rng(1)
    one = begun()
    for number in range(3000):
        canary = rng.random() < 0.5
        failed = rng.random() < (0.12 if canary else 0.03)
        counts = (failed and not canary, failed and canary, not canary, canary)
        events = Events(*(np.array([float(each)]) for each in counts))
        one.take(events, np.array([0.5]), 0.5, number / 10)
    assert log_e(one) > REACHED
