"""Many e-processes as one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from modelyard.rollout.budget import ALPHA
from modelyard.rollout.mixture import MOST_WINDOWS, Mixture, window_weight

PRIOR = np.array([0.5, 0.5])


def test_the_weights_of_all_starts_never_exceed_one() -> None:
    assert sum(window_weight(number) for number in range(100_000)) == pytest.approx(1, abs=1e-4)


def test_what_rolls_back_by_itself_is_allowed_one_false_alarm_in_a_hundred() -> None:
    assert sum(alpha for gate, alpha in ALPHA.items() if gate != "tokens") <= 0.01 + 1e-12


def log_e(mixture: Mixture) -> float:
    return mixture.against(0.0, None, 0.0).log_e


def test_nothing_seen_is_worth_less_than_one() -> None:
    mixture = Mixture(PRIOR, PRIOR)
    for _ in range(5):
        mixture.begin_window(0.0)
        assert np.exp(mixture.weighted()).sum() <= 1


def test_evidence_of_a_slice_or_window_is_not_lent_to_another() -> None:
    """The one is significant, the other beyond its margin: neither fails."""
    mixture = Mixture(PRIOR, PRIOR)
    mixture.begin_window(0.0)
    mixture.begin_window(900.0)
    mixture.add(np.array([[20.0, 20.0], [0.0, 0.0]]))
    margins = np.array([[0.0, 0.0], [9.0, 9.0]])
    against = mixture.against(5.0, margins, 2.0)
    assert against.log_margin < 2.0
    assert against.slice_ == 0
    margins[0, 1] = 3.0
    against = mixture.against(5.0, margins, 2.0)
    assert (against.slice_, against.since) == (0, 900.0)
    assert against.log_e >= 5.0
    assert against.log_margin == 3.0


def test_a_part_that_begins_late_does_not_carry_a_good_past() -> None:
    once, again = Mixture(PRIOR, PRIOR), Mixture(PRIOR, PRIOR)
    for mixture in (once, again):
        mixture.begin_window(0.0)
        mixture.add(np.full((2, 2), -20.0))
    again.begin_window(0.0)
    for mixture in (once, again):
        mixture.add(np.full((2, 2), 10.0))
    assert log_e(again) > math.log(100) > log_e(once)


def test_beyond_the_most_starts_evidence_is_only_lost() -> None:
    mixture = Mixture(PRIOR, PRIOR)
    for _ in range(3 * MOST_WINDOWS):
        mixture.begin_window(0.0)
        mixture.add(np.full((2, 2), 0.1))
    assert mixture.log_e.shape == (2, MOST_WINDOWS, 2)
    rest = 1 - sum(window_weight(number) for number in range(mixture.begun))
    whole = sum(
        window_weight(number) * math.exp(0.1 * (3 * MOST_WINDOWS - number))
        for number in range(3 * MOST_WINDOWS)
    )
    assert log_e(mixture) <= math.log(whole + rest)


def test_overwhelming_evidence_does_not_overflow() -> None:
    mixture = Mixture(PRIOR, PRIOR)
    mixture.begin_window(0.0)
    mixture.add(np.full((2, 2), 1e6))
    assert math.isfinite(log_e(mixture))
