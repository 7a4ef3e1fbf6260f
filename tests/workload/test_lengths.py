import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.workload.lengths import Lengths
from modelyard.workload.trace import Recorded, Trace

TRACES = {"t": Trace((Recorded(0, 100, 0), Recorded(1, 300, 7)))}


def drawn(record: dict[str, object], count: int = 3000) -> list[int]:
    lengths, rng = Lengths.model_validate(record), random.Random(5)
    return [lengths.draw(rng, TRACES) for _ in range(count)]


def test_a_fixed_length_is_always_the_same() -> None:
    assert set(drawn({"fixed": 7})) == {7}


def test_a_uniform_length_reaches_both_ends() -> None:
    assert set(drawn({"uniform": {"low": 2, "high": 5}})) == {2, 3, 4, 5}


def test_a_lognormal_length_has_its_median_and_is_cut_at_its_maximum() -> None:
    values = drawn({"lognormal": {"median": 300, "sigma": 0.8, "max": 1000}})
    assert statistics.median(values) == pytest.approx(300, rel=0.06)
    assert max(values) == 1000


def test_a_traced_length_is_one_that_was_recorded() -> None:
    assert set(drawn({"trace": {"file": "t", "column": "input_tokens"}})) == {100, 300}
    # Recorded requests without output still ask for a token: a cap of 0 is refused everywhere.
    assert set(drawn({"trace": {"file": "t", "column": "output_tokens"}})) == {1, 7}


@settings(max_examples=50, deadline=None)
@given(st.floats(0.01, 1e6), st.floats(0, 5), st.integers(1, 10_000), st.integers())
def test_no_length_is_below_one_or_above_the_maximum(
    median: float, sigma: float, maximum: int, seed: int
) -> None:
    lengths = Lengths.model_validate(
        {"lognormal": {"median": median, "sigma": sigma, "max": maximum}}
    )
    assert 1 <= lengths.draw(random.Random(seed), {}) <= maximum
