"""When a request is sent again: pure, so every case is drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from modelyard.client.retry import RetryPolicy
from modelyard.contract.errors import InvalidRequest, Overloaded, RateLimited, RequestError

draws = st.floats(0, 1, exclude_max=True)
seconds = st.floats(0, 1000)
errors = st.builds(
    lambda retryable, after_s: Overloaded("full", retryable=retryable, retry_after_s=after_s),
    st.booleans(),
    st.none() | st.floats(0, 200),
)
policies = st.builds(RetryPolicy, st.integers(1, 9), st.floats(0.01, 5), st.floats(0.01, 60))


@given(policies, errors, st.integers(1, 12), seconds, draws)
def test_a_pause_obeys_every_bound(
    policy: RetryPolicy, error: RequestError, attempt: int, left_s: float, draw: float
) -> None:
    pause_s = policy.pause_s(error, attempt, left_s, draw)
    if pause_s is None:
        return
    after_s = error.retry_after_s or 0.0
    assert error.retryable
    assert attempt < policy.max_attempts
    assert pause_s < left_s
    assert pause_s >= after_s
    assert pause_s - after_s <= min(policy.cap_s, policy.base_s * 2 ** (attempt - 1)) + 1e-9


@given(policies, st.integers(1, 8), draws)
def test_there_is_a_pause_whenever_time_and_attempts_are_left(
    policy: RetryPolicy, attempt: int, draw: float
) -> None:
    pause_s = policy.pause_s(Overloaded("full"), attempt, 1000.0, draw)
    assert (pause_s is not None) == (attempt < policy.max_attempts)


def test_the_jitter_is_full_and_its_range_doubles_up_to_the_cap() -> None:
    policy = RetryPolicy(max_attempts=9, base_s=1.0, cap_s=5.0)
    error = Overloaded("full")
    assert policy.pause_s(error, 1, 100.0, 0.0) == 0.0
    halves = [policy.pause_s(error, attempt, 100.0, 0.5) for attempt in (1, 2, 3, 4, 5)]
    assert halves == [0.5, 1.0, 2.0, 2.5, 2.5]


def test_what_cannot_succeed_is_not_sent_again() -> None:
    policy = RetryPolicy()
    assert policy.pause_s(InvalidRequest("wrong"), 1, 100.0, 0.5) is None
    # The quota is full again only after the deadline: waiting for it would be in vain.
    assert policy.pause_s(RateLimited("later", retry_after_s=30.0), 1, 20.0, 0.5) is None


def test_one_attempt_means_no_retry() -> None:
    assert RetryPolicy(max_attempts=1).pause_s(Overloaded("full"), 1, 100.0, 0.0) is None
