import pytest

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.retry import CLIENT_PLACES, Retry, RetryKind
from modelyard.contract.errors import Overloaded, RateLimited, ReplicaFailed, RequestError

SHED = Outcome(Verdict.REJECTED, 0, 1, code="503", reason="queue_full", retryable=True)
QUOTA = Outcome(Verdict.REJECTED, 0, 1, code="429", retryable=True, retry_after_s=5.0)
GONE = Outcome(Verdict.REJECTED, 0, 1, code="503", reason="not_loaded", retryable=True)
SILENT = Outcome(Verdict.FAILED, 0, 1, code="disconnected", retryable=True)


def test_without_a_policy_nothing_is_sent_again() -> None:
    assert Retry().pause_s(QUOTA, 1, 0.5) is None


def test_attempts_end() -> None:
    retry = Retry(RetryKind.IMMEDIATE, max_attempts=3)
    assert [retry.pause_s(QUOTA, attempt, 0.9) for attempt in (1, 2, 3)] == [0.0, 0.0, None]


def test_obeying_adds_a_drawn_back_off_to_what_was_said() -> None:
    retry = Retry(RetryKind.OBEY)
    assert retry.pause_s(QUOTA, 1, 0.0) == 5.0
    assert retry.pause_s(QUOTA, 3, 0.5) == pytest.approx(5.4)
    assert retry.pause_s(SILENT, 2, 0.5) == pytest.approx(0.2)


def test_what_cannot_succeed_is_final() -> None:
    retry = Retry(RetryKind.IMMEDIATE)
    assert retry.pause_s(Outcome(Verdict.FAILED, 0, 1, code="400"), 1, 0) is None
    assert retry.pause_s(Outcome(Verdict.COMPLETED, 0, 1, retryable=True), 1, 0) is None


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (SHED, Overloaded("full", reason="queue_full")),
        (GONE, Overloaded("loading", reason="not_loaded")),
        (QUOTA, RateLimited("quota", retry_after_s=5.0)),
        (SILENT, ReplicaFailed("gone")),
    ],
)
def test_obeying_sends_as_often_as_the_platforms_client(
    outcome: Outcome, error: RequestError
) -> None:
    retry, policy = Retry(RetryKind.OBEY), RetryPolicy(max_attempts=4)
    budget, ours, clients = policy.budget(CLIENT_PLACES), 0, 0
    for _ in range(200):
        retry.request()
        budget.request()
        for attempt in range(1, 5):
            ours += retry.pause_s(outcome, attempt, 0.5) is not None
            may = policy.pause_s(error, attempt, 1e9, 0.5) is not None
            clients += may and budget.retry(error)
    assert ours == clients > 0


def test_a_peers_refusal_in_its_own_words_is_taken_for_overload() -> None:
    retry = Retry(RetryKind.OBEY)
    for reason in ("overloaded_error", ""):
        outcome = Outcome(Verdict.REJECTED, 0, 1, code="529", reason=reason, retryable=True)
        sent = 0
        for _ in range(100):
            retry.request()
            sent += retry.pause_s(outcome, 1, 0.5) is not None
        assert 9 <= sent <= 11
