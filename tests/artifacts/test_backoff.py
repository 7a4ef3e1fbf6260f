from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from modelyard.artifacts.backoff import Patience

PATIENCE = Patience(base_s=0.5, cap_s=20.0)


def test_the_longest_wait_doubles_up_to_the_cap() -> None:
    waits = [PATIENCE.backoff_s(failures, 1.0) for failures in range(1, 9)]
    assert waits == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0]


def test_full_jitter_spreads_from_nothing_to_the_longest_wait() -> None:
    assert PATIENCE.backoff_s(3, 0.0) == 0.0
    assert PATIENCE.backoff_s(3, 0.25) == 0.5


@given(st.integers(1, 10**9), st.floats(0, 1, exclude_max=True))
def test_no_wait_is_negative_or_beyond_the_cap(failures: int, random: float) -> None:
    assert 0.0 <= PATIENCE.backoff_s(failures, random) <= PATIENCE.cap_s
