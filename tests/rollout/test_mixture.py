"""Many e-processes as one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from modelyard.rollout.budget import ALPHA
from modelyard.rollout.mixture import MOST_STARTS, Mixture, start_weight

PRIOR = np.array([0.5, 0.5])


def test_the_weights_of_all_starts_never_exceed_one() -> None:
    assert sum(start_weight(number) for number in range(100_000)) == pytest.approx(1, abs=1e-4)


def test_what_rolls_back_by_itself_is_allowed_one_false_alarm_in_a_hundred() -> None:
    assert sum(alpha for gate, alpha in ALPHA.items() if gate != "tokens") <= 0.01 + 1e-12


def test_nothing_seen_is_worth_one() -> None:
    mixture = Mixture(PRIOR, PRIOR)
    for _ in range(5):
        mixture.begin()
        assert mixture.evidence()[0] == pytest.approx(0, abs=1e-12)


def test_a_part_that_begins_late_does_not_carry_a_good_past() -> None:
    once, again = Mixture(PRIOR, PRIOR), Mixture(PRIOR, PRIOR)
    for mixture in (once, again):
        mixture.begin()
        mixture.add(np.full((2, 2), -20.0))
    again.begin()
    for mixture in (once, again):
        mixture.add(np.full((2, 2), 10.0))
    assert again.evidence()[0] > math.log(100) > once.evidence()[0]


def test_beyond_the_most_starts_evidence_is_only_lost() -> None:
    mixture = Mixture(PRIOR, PRIOR)
    for _ in range(3 * MOST_STARTS):
        mixture.begin()
        mixture.add(np.full((2, 2), 0.1))
    assert mixture.log_e.shape == (2, MOST_STARTS, 2)
    rest = 1 - sum(start_weight(number) for number in range(mixture.begun))
    whole = sum(
        start_weight(number) * math.exp(0.1 * (3 * MOST_STARTS - number))
        for number in range(3 * MOST_STARTS)
    )
    assert mixture.evidence()[0] <= math.log(whole + rest)


def test_overwhelming_evidence_does_not_overflow() -> None:
    mixture = Mixture(PRIOR, PRIOR)
    mixture.begin()
    mixture.add(np.full((2, 2), 1e6))
    assert math.isfinite(mixture.evidence()[0])
