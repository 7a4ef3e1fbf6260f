import random

from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.retry_after import LONGEST_S, SHORTEST_S, SPREAD, retry_after_s


@given(
    st.floats(0, 1e9),
    st.none() | st.floats(0, 1e6),
    st.randoms(use_true_random=False),
)
def test_it_lies_between_one_second_and_two_minutes(
    ahead: float, rate: float | None, rng: random.Random
) -> None:
    assert SHORTEST_S <= retry_after_s(ahead, rate, rng) <= LONGEST_S


def test_it_is_the_time_in_which_those_before_it_drain() -> None:
    seconds = [retry_after_s(200, 20.0, random.Random(seed)) for seed in range(100)]
    assert min(seconds) >= 10.0
    assert max(seconds) <= 10.0 * SPREAD


def test_those_refused_together_do_not_come_back_together() -> None:
    rng = random.Random(1)
    for ahead in (0, 200, 1e9):
        seconds = sorted(retry_after_s(ahead, 20.0, rng) for _ in range(200))
        assert seconds[-1] > seconds[0] * 1.4
        # No tenth of a percent of the spread holds more than a few of them.
        assert len({round(s / seconds[0], 3) for s in seconds}) > 100


def test_before_a_rate_is_known_it_is_about_a_second() -> None:
    assert SHORTEST_S <= retry_after_s(500, None, random.Random(1)) <= SHORTEST_S * SPREAD
