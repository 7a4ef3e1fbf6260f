import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.service_times import ENOUGH, RECENT_S, SAMPLES, ServiceTimes, Spread


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
    assert ServiceTimes().start_s() is None
    assert fed([3.0]).start_s() == Spread(1.5, 1.5)
    assert fed([float(i) for i in range(10)]).start_s() == Spread(3.5, 4.5)
    assert fed([float(i) for i in range(1, 101)]).start_s() == Spread(40.0, 47.5)


def test_only_the_last_samples_count() -> None:
    times = fed([1.0] * SAMPLES + [2.0] * SAMPLES)
    assert times.release_rate(2) == pytest.approx(1.0)
    assert times.start_s() == Spread(1.0, 1.0)


def test_old_samples_go_when_new_ones_come_but_for_the_last() -> None:
    times = fed([1.0] * 150)
    times.add(14.9 + RECENT_S + 1, 2.0, None)
    assert times.release_rate(1) == pytest.approx(ENOUGH / (ENOUGH - 1 + 2.0))


def test_a_quiet_night_does_not_make_it_forget() -> None:
    times = fed([1.0] * 150)
    times.add(50_000.0, 1.0, 0.5)
    assert times.release_rate(4) == pytest.approx(4.0)
    assert times.start_s() == Spread(0.5, 0.5)


def test_failures_at_once_are_no_quick_answers() -> None:
    times = fed([0.5] * ENOUGH)
    for i in range(2 * SAMPLES):
        times.add(10.0 + i, 0.001, None)
    assert times.release_rate(8) == pytest.approx(16.0)
    assert times.start_s() == Spread(0.25, 0.25)


def test_before_any_answer_what_was_cut_says_nothing() -> None:
    times = ServiceTimes()
    for i in range(2 * ENOUGH):
        times.add(float(i), 0.001 * i, None)
    assert times.release_rate(8) is None
    assert times.start_s() is None


@pytest.mark.parametrize("first_s", [None, 0.2])
def test_slots_held_long_and_then_left_show_that_the_model_is_slow(first_s: float | None) -> None:
    times = fed([0.5] * ENOUGH)
    for i in range(SAMPLES):
        times.add(10.0 + i, 5.0, first_s, cut=True)
    assert times.release_rate(2) == pytest.approx(2 / 5.0)
    assert times.start_s() == (Spread(5.0, 5.0) if first_s is None else Spread(0.2, 0.2))


def test_callers_that_leave_soon_leave_what_is_believed() -> None:
    times = fed([0.5] * ENOUGH)
    for i in range(SAMPLES):
        times.add(10.0 + i, 0.3, None)
        times.add(10.0 + i, 0.3, 0.2, streams=True, cut=True)
    assert times.release_rate(1) == pytest.approx(2.0)
    assert times.start_s(streams=True) == Spread(0.2, 0.2)
    assert times.streamed_s() is None


def test_a_stream_that_was_cut_lasted_at_least_so_long() -> None:
    times = ServiceTimes()
    times.add(0.0, 2.0, 0.2, streams=True)
    for i in range(1, 50):
        times.add(float(i), 6.0, 0.2, streams=True, cut=True)
    assert times.streamed_s() == Spread(6.0, 6.0)


def test_streams_are_apart_from_whole_answers() -> None:
    times = ServiceTimes()
    for i in range(50):
        times.add(i, 6.0, 0.2, streams=True)
        times.add(i, 6.0, 6.0)
    assert times.start_s(streams=True) == Spread(0.2, 0.2)
    assert times.start_s() == Spread(6.0, 6.0)
    assert times.streamed_s() == Spread(6.0, 6.0)
    assert times.release_rate(6) == pytest.approx(1.0)


def test_a_clock_that_gave_nonsense_makes_no_negative_time() -> None:
    times = ServiceTimes()
    for i in range(ENOUGH):
        times.add(i, -1.0, -1.0)
    assert times.start_s() == Spread(0.0, 0.0)
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
    at_80, at_95 = (held[-(-len(held) * percent // 100) - 1] for percent in (80, 95))
    assert times.start_s() == Spread(at_80, at_95)


def test_many_samples_of_very_different_size_do_not_drift() -> None:
    rng, times = random.Random(3), ServiceTimes()
    for i in range(20_000):
        times.add(i * 0.01, rng.choice([1e-9, 1e6]), 0.0)
    for i in range(SAMPLES):
        times.add(201.0 + i * 0.01, 0.25, 0.0)
    assert times.release_rate(1) == pytest.approx(4.0, rel=1e-3)
