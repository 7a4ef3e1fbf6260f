"""Durations in buckets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.rollout.histogram import BUCKETS, bucket, position, quantile_s


def counts_of(
    seconds: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.bincount(bucket(position(seconds)), minlength=BUCKETS)


@given(seed=st.integers(0, 1000), sigma=st.floats(0.1, 2), share=st.sampled_from([0.5, 0.8, 0.95]))
@settings(max_examples=50, deadline=None)
def test_a_quantile_is_right_to_two_percent(seed: int, sigma: float, share: float) -> None:
    seconds = np.random.default_rng(seed).lognormal(0, sigma, 500)
    exact = float(np.quantile(seconds, share, method="inverted_cdf"))
    assert quantile_s(counts_of(seconds), share) == pytest.approx(exact, rel=0.021)


def test_nothing_has_no_quantile() -> None:
    assert quantile_s(np.zeros(BUCKETS), 0.95) is None


def test_what_is_beyond_either_end_is_kept_at_that_end() -> None:
    counts = counts_of(np.array([0.0, 1e9]))
    assert (counts[0], counts[-1], counts.sum()) == (1, 1, 2)
