from __future__ import annotations

import pytest

from modelyard.quota.bucket import RATE, UNITS
from modelyard.quota.figures import Figures
from modelyard.quota.headers import Gauge, duration, rate_limit_headers


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.0115, "12ms"),
        (1, "1s"),
        (1.2, "2s"),
        (59.999, "1m0s"),
        (360, "6m0s"),
        (3661, "1h1m1s"),
    ],
)
def test_resets_are_written_as_openai_does_and_rounded_up(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_tokens_is_the_bucket_that_refuses_first() -> None:
    whole = Figures(6000 * RATE, 600 * UNITS)
    part = Figures(3000 * RATE, 300 * UNITS)
    headers = dict(
        rate_limit_headers(
            {
                "input": Gauge.of(whole, part, 250 * UNITS),
                "output": Gauge.of(whole, part, 50 * UNITS),
            }
        )
    )
    assert headers["x-ratelimit-limit-tokens"] == "6000"
    assert headers["x-ratelimit-remaining-tokens"] == "50"
    assert headers["x-ratelimit-reset-tokens"] == "5s"
    assert headers["x-ratelimit-remaining-input-tokens"] == "250"
    assert headers["x-ratelimit-reset-input-tokens"] == "1s"
    assert "x-ratelimit-limit-requests" not in headers


def test_a_debt_is_nothing_remaining() -> None:
    gauge = Gauge.of(Figures(60 * RATE, UNITS), Figures(60 * RATE, UNITS), -UNITS)
    assert (gauge.remaining, gauge.reset_s) == (0, 2.0)
