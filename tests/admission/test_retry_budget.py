from hypothesis import given
from hypothesis import strategies as st

from modelyard.admission.retry_budget import RATIO, RESERVE, RetryBudget

events = st.lists(st.sampled_from(["request", "retry"]), max_size=2000)


@given(events)
def test_retries_stay_under_a_share_of_the_requests_and_the_reserve(sequence: list[str]) -> None:
    budget, requests, retries = RetryBudget(), 0, 0
    for event in sequence:
        if event == "request":
            requests += 1
            budget.request()
        elif budget.retry():
            retries += 1
        assert retries <= RESERVE + RATIO * requests + 1e-6


@given(st.integers(0, 100_000))
def test_a_quiet_past_saves_up_no_more_than_the_reserve(requests: int) -> None:
    budget = RetryBudget(ratio=0.5, reserve=3)
    for _ in range(min(requests, 1000)):
        budget.request()
    assert [budget.retry() for _ in range(5)] == [True, True, True, False, False]


def test_a_new_service_may_retry_at_once() -> None:
    assert RetryBudget().retry()
