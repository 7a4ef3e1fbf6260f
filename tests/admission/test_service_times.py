import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.service_times import ENOUGH, RECENT_S, SAMPLES, ServiceTimes


def fed(values: list[float], apart_s: float = 0.1) -> ServiceTimes:
    times = ServiceTimes()
    for i, value in enumerate(values):
        times.add(i * apart_s, value, value / 2)
    return times


def test_there_is_no_rate_before_enough_samples() -> None:
    assert fed([0.5] * (ENOUGH - 1)).release_rate(8) is None
    assert fed([0.5] * ENOUGH).release_rate(8) == pytest.approx(16.0)


def test_the_rate_is_of_busy_slots_however_seldom_they_are_used() -> None:
    assert fed([0.5] * 100, apart_s=1.0).release_rate(8) == pytest.approx(16.0)


def test_the_p95_is_the_largest_of_a_few_and_a_quantile_of_many() -> None:
    assert ServiceTimes().p95_start_s() is None
    assert fed([3.0]).p95_start_s() == 1.5
    assert fed([float(i) for i in range(10)]).p95_start_s() == 4.5
    assert fed([float(i) for i in range(1, 101)]).p95_start_s() == 47.5


def test_only_the_last_samples_count() -> None:
    times = fed([1.0] * SAMPLES + [2.0] * SAMPLES)
    assert times.release_rate(2) == pytest.approx(1.0)
    assert times.p95_start_s() == 1.0


def test_old_samples_go_when_new_ones_come_but_for_the_last() -> None:
    times = fed([1.0] * 150)
    times.add(14.9 + RECENT_S + 1, 2.0, None)
    assert times.release_rate(1) == pytest.approx(ENOUGH / (ENOUGH - 1 + 2.0))


def test_a_quiet_night_does_not_make_it_forget() -> None:
    times = fed([1.0] * 150)
    times.add(50_000.0, 1.0, 0.5)
    assert times.release_rate(4) == pytest.approx(4.0)
    assert times.p95_start_s() == 0.5


def test_one_that_never_began_counts_as_held_alone() -> None:
    times = ServiceTimes()
    for i in range(ENOUGH):
        times.add(float(i), 2.0, None)
    assert times.release_rate(1) == pytest.approx(0.5)
    assert times.p95_start_s() is None


def test_streams_are_apart_from_whole_answers() -> None:
    times = ServiceTimes()
    for i in range(50):
        times.add(i, 6.0, 0.2, streams=True)
        times.add(i, 6.0, 6.0)
    assert times.p95_start_s(streams=True) == 0.2
    assert times.p95_start_s() == 6.0
    assert times.release_rate(6) == pytest.approx(1.0)


def test_a_clock_that_gave_nonsense_makes_no_negative_time() -> None:
    times = ServiceTimes()
    for i in range(ENOUGH):
        times.add(i, -1.0, -1.0)
    assert times.p95_start_s() == 0.0
    rate = times.release_rate(1)
    assert rate is not None
    assert rate > 0


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(0, 100)), min_size=60, max_size=400))
def test_it_agrees_with_the_plain_sum_over_the_window(gaps: list[tuple[float, float]]) -> None:
    times, now, window = ServiceTimes(), 0.0, list[tuple[float, float]]()
    for gap_s, held_s in gaps:
        now += gap_s
        times.add(now, held_s, held_s)
        window.append((now, held_s))
        while len(window) > ENOUGH and (len(window) > SAMPLES or window[0][0] < now - RECENT_S):
            window.pop(0)
    held = sorted(held_s for _, held_s in window)
    mean = max(sum(held) / len(held), 1e-6)
    assert times.release_rate(3) == pytest.approx(3 / mean, rel=1e-3)
    assert times.p95_start_s() == held[-(-len(held) * 95 // 100) - 1]


def test_many_samples_of_very_different_size_do_not_drift() -> None:
    rng, times = random.Random(3), ServiceTimes()
    for i in range(20_000):
        times.add(i * 0.01, rng.choice([1e-9, 1e6]), None)
    for i in range(SAMPLES):
        times.add(201.0 + i * 0.01, 0.25, None)
    assert times.release_rate(1) == pytest.approx(4.0, rel=1e-3)
