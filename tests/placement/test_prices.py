from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from placement.prices import round_up


@given(st.integers(0, 60), st.lists(st.integers(1, 20), min_size=1, max_size=3))
def test_it_is_the_least_sum_of_prices_that_is_not_below(least: int, prices: list[int]) -> None:
    most = range(61)
    sums = {
        sum(price * times for price, times in zip(prices, counts, strict=True))
        for counts in product(*[most[: least // price + 2] for price in prices])
    }

    assert round_up(least, prices) == min(total for total in sums if total >= least)


def test_sums_too_many_to_list_are_rounded_to_the_common_divisor() -> None:
    assert round_up(10**12 + 1, [300_000, 500_000]) == 10**12 + 100_000


def test_nothing_costs_nothing() -> None:
    assert round_up(0, [7]) == 0
    assert round_up(5, []) == 0
