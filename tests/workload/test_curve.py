import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.workload.curve import Segment, arrival_times, even_points, poisson_points

rates = st.floats(0, 50)
segments = st.lists(st.builds(Segment, st.floats(0.1, 20), rates, rates), min_size=1, max_size=5)


@settings(max_examples=100, deadline=None)
@given(segments)
def test_even_points_come_as_many_as_the_area_below_the_curve_and_in_order(
    curve: list[Segment],
) -> None:
    times = list(arrival_times(curve, even_points()))
    area = math.fsum(segment.expected for segment in curve)
    assert abs(len(times) - area) <= 1
    assert times == sorted(times)
    assert all(0 <= time <= sum(s.duration_s for s in curve) + 1e-6 for time in times)


def test_a_ramp_from_nothing_has_its_points_at_the_square_roots() -> None:
    times = list(arrival_times([Segment(10.0, 0.0, 20.0)], even_points()))
    assert times[:5] == pytest.approx([math.sqrt(index) for index in range(5)])
    assert len(times) == 100


def test_a_step_of_rate_zero_is_a_silence() -> None:
    curve = [Segment(2.0, 5.0, 5.0), Segment(10.0, 0.0, 0.0), Segment(2.0, 5.0, 5.0)]
    times = list(arrival_times(curve, even_points()))
    assert len(times) == 20
    assert not any(2.0 < time < 12.0 for time in times)


def test_poisson_points_have_the_mean_and_the_variance_of_a_poisson_process() -> None:
    points = itertools.takewhile(lambda point: point < 20_000, poisson_points(random.Random(1)))
    counts = [0] * 20_000
    for point in points:
        counts[int(point)] += 1
    mean = sum(counts) / len(counts)
    variance = sum((count - mean) ** 2 for count in counts) / len(counts)
    assert mean == pytest.approx(1.0, abs=0.03)
    assert variance == pytest.approx(1.0, abs=0.06)
