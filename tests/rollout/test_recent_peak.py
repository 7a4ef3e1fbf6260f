"""The most of the last minute."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from modelyard.rollout.recent_peak import WINDOW_S, RecentPeak


def test_nothing_counted_is_none_of_anything() -> None:
    assert RecentPeak().at(5.0) == 0


@given(st.lists(st.tuples(st.floats(0, 50), st.integers(0, 100)), max_size=40))
def test_it_is_the_largest_count_of_the_window(steps: list[tuple[float, int]]) -> None:
    peak, counted, now = RecentPeak(), [], 0.0
    for elapsed_s, count in steps:
        now += elapsed_s
        peak.add(count, now)
        counted.append((now, count))
        assert peak.at(now) == max(one for at, one in counted if now - at <= WINDOW_S)
    assert peak.at(now + WINDOW_S + 1) == 0
