"""When a request is sent again: pure, so every case is drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.contract.errors import (
    InvalidRequest,
    Overloaded,
    RateLimited,
    ReplicaFailed,
    RequestError,
)

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


def shed(retry_after_s: float = 2.0) -> Overloaded:
    return Overloaded("full", reason="queue_full", retry_after_s=retry_after_s)


not_loaded = Overloaded("starting", reason="not_loaded", retry_after_s=2.0)


def test_an_outage_may_use_up_the_attempts_of_the_calls_under_way() -> None:
    budget = RetryPolicy(max_attempts=5).budget(places=4)
    for error in (ReplicaFailed("died"), not_loaded) * 8:
        assert budget.retry(error)
    assert not budget.retry(not_loaded)


@given(st.lists(st.booleans(), max_size=300))
def test_an_overload_gets_a_tenth_of_the_calls_and_one(events: list[bool]) -> None:
    budget, calls, retries = RetryPolicy().budget(places=16), 0, 0
    for is_call in events:
        if is_call:
            calls += 1
            budget.request()
        else:
            retries += budget.retry(shed())
        assert retries <= 1 + 0.1 * calls + 1e-6


def test_a_quotas_refusal_costs_nothing() -> None:
    budget = RetryPolicy(max_attempts=2).budget(places=1)
    assert all(budget.retry(RateLimited("slower")) for _ in range(100))
    assert budget.retry(ReplicaFailed("died"))


def test_a_place_rests_as_long_as_the_queue_asked_but_not_for_other_errors() -> None:
    policy = RetryPolicy(cap_s=10.0)
    assert policy.rest_s(shed(3.0)) == 3.0
    assert policy.rest_s(shed(90.0)) == 10.0
    others: list[RequestError] = [ReplicaFailed("died"), not_loaded, RateLimited("slower")]
    assert [policy.rest_s(error) for error in others] == [0.0, 0.0, 0.0]
