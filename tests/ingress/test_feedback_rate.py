from __future__ import annotations

import pytest

from modelyard.contract.errors import RateLimited
from modelyard.ingress.feedback_rate import MINUTE_S, PER_MINUTE, FeedbackRate
from modelyard.ingress.outcomes import MAX_WORDS


def full(rate: FeedbackRate, tenant: str, now: float) -> None:
    for _ in range(PER_MINUTE):
        rate.count(tenant, now)


def test_one_tenant_alone_is_bounded_and_told_when_the_minute_ends() -> None:
    rate = FeedbackRate()
    full(rate, "alpha", 100.0)
    with pytest.raises(RateLimited) as refused:
        rate.count("alpha", 110.0)
    assert refused.value.retry_after_s == MINUTE_S - 10
    rate.count("beta", 110.0)


def test_the_next_minute_is_a_new_one() -> None:
    rate = FeedbackRate()
    full(rate, "alpha", 100.0)
    full(rate, "alpha", 100.0 + MINUTE_S)
    with pytest.raises(RateLimited):
        rate.count("alpha", 100.0 + MINUTE_S)


def test_one_tenant_cannot_fill_a_batch() -> None:
    assert 2 * PER_MINUTE < MAX_WORDS  # the end of a minute and the beginning of the next
