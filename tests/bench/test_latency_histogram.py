import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.bench.histogram import COARSE, LatencyHistogram
from modelyard.contract.errors import ConfigError

seconds = st.lists(st.floats(1e-6, 3000), min_size=1, max_size=60)


def of(values: list[float], digits: int = 3) -> LatencyHistogram:
    histogram = LatencyHistogram(digits)
    for value in values:
        histogram.record(value)
    return histogram


@settings(max_examples=40, deadline=None)
@given(seconds, st.sampled_from([50, 90, 99, 100]))
def test_percentiles_are_those_of_the_values_within_a_thousandth(
    values: list[float], percent: float
) -> None:
    got = of(values).percentiles_ms(percent)[0]
    ordered = sorted(values)
    rank = math.ceil(round(percent / 100 * len(ordered), 6))
    assert got == pytest.approx(ordered[max(1, rank) - 1] * 1000, rel=0.0011, abs=0.001)


@settings(max_examples=20, deadline=None)
@given(seconds, seconds, st.sampled_from([3, COARSE]))
def test_histograms_add_up_also_after_a_journey(
    one: list[float], other: list[float], digits: int
) -> None:
    together = LatencyHistogram.decode(of(one, digits).encode(), digits)
    together.add(LatencyHistogram.decode(of(other, digits).encode(), digits))
    assert together.encode() == of(one + other, digits).encode()
    assert together.count == len(one) + len(other)


def test_nothing_recorded_has_no_percentile() -> None:
    empty = LatencyHistogram()
    assert empty.percentiles_ms(50)[0] is None
    assert empty.mean_ms() is None
    assert list(empty.cumulated()) == []
    assert LatencyHistogram.decode(empty.encode()).count == 0


def test_what_is_too_long_or_too_short_is_counted_at_the_ends() -> None:
    histogram = of([0.0, -1.0, math.pi * 1e6])
    assert histogram.count == 3
    assert histogram.percentiles_ms(100)[0] == pytest.approx(3_600_000, rel=0.001)


def test_shares_rise_to_one() -> None:
    points = list(of([0.01, 0.02, 0.02, 0.04]).cumulated())
    assert [share for _, share in points] == [0.25, 0.75, 1.0]
    assert [ms for ms, _ in points] == pytest.approx([10, 20, 40], rel=0.001)


@pytest.mark.parametrize("text", ["", "nonsense", "HISTFAAAAA==", "é"])
def test_what_is_no_histogram_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="no HDR histogram"):
        LatencyHistogram.decode(text)
