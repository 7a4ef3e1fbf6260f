from __future__ import annotations

import pytest

from modelyard.ingress.charge import CLIENT_GONE, Charge, charge
from modelyard.telemetry.request_log import RequestRecord


def record(**changes: object) -> RequestRecord:
    made = RequestRecord(ts="", request_id="r", route="/v1/chat/completions", attempt=1)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_a_whole_answer_costs_what_the_engine_counted() -> None:
    whole = record(
        status=200,
        finish_reason="stop",
        input_tokens=7,
        output_tokens=3,
        ttft_ms=1.0,
        cached_tokens=2,
    )
    assert charge(whole) == Charge(True, 7, 3, 2)


@pytest.mark.parametrize("status", [CLIENT_GONE, 504, 502])
def test_a_stream_cut_short_costs_what_was_sent_and_its_prompt(status: int) -> None:
    assert charge(record(status=status, output_tokens=3, ttft_ms=1.0)) == Charge(True, None, 3)


@pytest.mark.parametrize("status", [CLIENT_GONE, 504])
def test_a_stream_that_is_left_before_the_first_token_costs_its_prompt(status: int) -> None:
    """Or prompts would be free for whoever hangs up early."""
    assert charge(record(status=status, stream=True)) == Charge(True, None, 0)


@pytest.mark.parametrize("status", [CLIENT_GONE, 504])
def test_a_whole_answer_that_nobody_waited_for_costs_what_was_reserved(status: int) -> None:
    assert charge(record(status=status)) == Charge(True, None, None)


@pytest.mark.parametrize("status", [502, 503, 400, 500])
def test_what_failed_before_anything_was_made_is_free(status: int) -> None:
    assert charge(record(status=status)) == Charge(False, 0)


def test_what_was_too_late_to_begin_is_free() -> None:
    assert charge(record(status=504, reason="expired")) == Charge(False, 0)


def test_what_was_never_sent_is_free() -> None:
    assert charge(record(status=CLIENT_GONE, attempt=0)) == Charge(False, 0)
