"""The seed's example to the digit, and the arithmetic that splits rest on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from modelyard.quota.bucket import UNITS, Permits, TokenBucket


def test_the_seeds_example_comes_out_to_the_digit() -> None:
    bucket = TokenBucket.full(tokens_per_min=20_000, burst_tokens=4000, now=0.0)
    assert bucket.reserve(1500 + 1024, 0.0) is True
    assert bucket.reserve(1500 + 1024, 0.0) is False
    bucket.settle(reserved_tokens=1024, used_tokens=120, now=0.0)
    assert bucket.tokens == 2380.0


@given(times=st.lists(st.integers(1, 10**7), max_size=20), rate=st.integers(1, 10**7))
def test_many_small_refills_are_one_large_one(times: list[int], rate: int) -> None:
    many, once = (TokenBucket(rate, 10**30, 0, 0.0) for _ in range(2))
    now = 0
    for microseconds in times:
        now += microseconds
        many.refill(now / 1_000_000)
    once.refill(now / 1_000_000)
    assert many.level == once.level


def test_overuse_is_a_debt_that_the_refill_pays_off() -> None:
    bucket = TokenBucket.full(tokens_per_min=60, burst_tokens=10, now=0.0)
    assert bucket.reserve(10, 0.0)
    bucket.settle(reserved_tokens=10, used_tokens=15, now=0.0)
    assert bucket.tokens == -5.0
    assert not bucket.reserve(1, 5.0)
    assert bucket.reserve(1, 6.0)


def test_a_clock_that_runs_back_fills_nothing() -> None:
    bucket = TokenBucket(1000, 10 * UNITS, 0, 100.0)
    bucket.refill(50.0)
    bucket.refill(100.0)
    assert bucket.level == 0


def test_permits_in_use_are_given_up_only_when_they_come_back() -> None:
    permits = Permits(3)
    assert permits.reserve(2)
    permits.resize(1)
    assert (permits.held, permits.free) == (2, 0)
    permits.release(1)
    assert (permits.held, permits.free) == (1, 0)
    permits.release(1)
    assert (permits.held, permits.free) == (1, 1)


def test_permits_of_a_lost_split_still_count_until_released() -> None:
    permits = Permits(2)
    assert permits.reserve(2)
    permits.drop()
    permits.resize(3)
    assert permits.free == 1
    assert not permits.reserve(2)
