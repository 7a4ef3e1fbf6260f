from bisect import bisect_left

from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.telemetry.histogram import Histogram

EDGES = (0.1, 1.0, 10.0)


def test_an_edge_belongs_to_its_own_bucket() -> None:
    held = Histogram(EDGES)
    for value in (0.1, 0.1001, 10.0, 11.0):
        held.observe(value)
    assert held.cumulative() == [1, 2, 3, 4]


def test_one_value_may_count_for_several() -> None:
    held = Histogram(EDGES)
    held.observe(0.5, 4)
    assert held.cumulative() == [0, 4, 4, 4]
    assert held.total == 2.0


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0, 20), st.integers(1, 5))))
def test_what_is_below_an_edge_is_counted_there(seen: list[tuple[float, int]]) -> None:
    held = Histogram(EDGES)
    for value, times in seen:
        held.observe(value, times)
    expected = [sum(times for value, times in seen if value <= edge) for edge in EDGES]
    assert held.cumulative() == [*expected, sum(times for _, times in seen)]
    assert all(bisect_left(EDGES, edge) == place for place, edge in enumerate(EDGES))
