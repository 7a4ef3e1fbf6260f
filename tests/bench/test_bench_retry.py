import pytest

from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.retry import Retry, RetryKind

REFUSED = Outcome(Verdict.REJECTED, 0, 1, code="503", retryable=True, retry_after_s=5.0)
SILENT = Outcome(Verdict.FAILED, 0, 1, code="disconnected", retryable=True)


def test_without_a_policy_nothing_is_sent_again() -> None:
    assert Retry().pause_s(REFUSED, 1, 0.5) is None


def test_attempts_end() -> None:
    retry = Retry(RetryKind.IMMEDIATE, max_attempts=3)
    assert [retry.pause_s(REFUSED, attempt, 0.9) for attempt in (1, 2, 3)] == [0.0, 0.0, None]


def test_obeying_adds_a_drawn_back_off_to_what_was_said() -> None:
    retry = Retry(RetryKind.OBEY)
    assert retry.pause_s(REFUSED, 1, 0.0) == 5.0
    assert retry.pause_s(REFUSED, 3, 0.5) == pytest.approx(5.4)
    assert retry.pause_s(SILENT, 2, 0.5) == pytest.approx(0.2)


def test_what_cannot_succeed_is_final() -> None:
    retry = Retry(RetryKind.IMMEDIATE)
    assert retry.pause_s(Outcome(Verdict.FAILED, 0, 1, code="400"), 1, 0) is None
    assert retry.pause_s(Outcome(Verdict.COMPLETED, 0, 1, retryable=True), 1, 0) is None
