"""The canary's share of what is at risk."""

from __future__ import annotations

import numpy as np
import pytest

from modelyard.rollout.columns import Columns
from modelyard.rollout.exposure import Exposure


def requests(control: int, canary: int) -> Columns:
    n = control + canary
    nothing = np.full(n, np.nan)
    none = np.zeros(n, dtype=np.int64)
    failed = np.zeros(n, dtype=np.bool_)
    return Columns(np.arange(n) < canary, none, failed, none, nothing, nothing, nothing)


def at(weight: float) -> Exposure:
    exposure = Exposure(1)
    exposure.begin(weight, 0.0)
    return exposure


def share(exposure: Exposure, now: float = 1000.0) -> float:
    return float(exposure.share(now)[0])


def test_after_a_weight_was_lowered_the_old_one_is_believed_for_a_while() -> None:
    exposure = at(0.25)
    exposure.begin(0.05, 1000.0)
    assert share(exposure, 1001.0) == pytest.approx(0.25)
    assert share(exposure, 1200.0) == pytest.approx(0.05)


def test_a_draw_that_sends_more_than_the_weight_is_noticed() -> None:
    exposure = at(0.05)
    exposure.take(requests(1000, 1000))
    assert share(exposure) == pytest.approx(0.46, abs=0.01)


def test_a_draw_as_the_weight_says_leaves_the_weight() -> None:
    exposure = at(0.05)
    for _ in range(100):
        exposure.take(requests(190, 10))
    assert share(exposure) == pytest.approx(0.05)


def test_a_canary_that_is_partly_ready_is_not_hidden_by_its_weight() -> None:
    exposure = at(0.5)
    exposure.take(requests(150, 50))
    assert share(exposure) == pytest.approx(0.5)  # too few to say
    for _ in range(50):
        exposure.take(requests(30, 10))
    assert 0.25 < share(exposure) < 0.33


def test_a_canary_that_becomes_ready_has_its_weight_soon() -> None:
    exposure = at(0.5)
    for _ in range(500):
        exposure.take(requests(36, 4))
    assert share(exposure) < 0.2
    for _ in range(25):
        exposure.take(requests(20, 20))
    assert share(exposure) > 0.4
