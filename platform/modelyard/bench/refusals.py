"""Answers that are no answer: why, and whether to come back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from modelyard.bench.outcome import Outcome, Verdict
from modelyard.bench.wire.reading import cause, message

REJECTING: Final = (429, 503, 529)  # 529: Anthropic's "overloaded"
MAX_TEXT_BYTES: Final = 4096  # of a body that is no JSON
RETRYABLE: Final = (*REJECTING, 502, 504)
_AWAY: Final = ("overloaded", "rate_limited", "rate_limit_exceeded", "overloaded_error")


def turned_away(code: str) -> bool:
    """Whether the code of an event in a stream is a rejection rather than a failure."""
    return code in _AWAY


def outcome_of_refusal(
    status: int, headers: Mapping[str, str], body: bytes, started: float, ended: float
) -> Outcome:
    """From an answer whose status is not 200, of this platform or any other server."""
    record = _json(body)
    _, reason = cause(record)
    return Outcome(
        Verdict.REJECTED if status in REJECTING else Verdict.FAILED,
        started,
        ended,
        code=str(status),
        reason=reason,
        message=message(record) if record is not None else _text(body),
        retry_after_s=retry_after_s(headers),
        retryable=_retryable(status, headers),
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait; None where there is neither `retry-after-ms` nor a number of seconds."""
    for name, unit_s in (("retry-after-ms", 1e-3), ("Retry-After", 1.0)):
        try:
            wait_s = float(headers.get(name, "")) * unit_s
        except ValueError:  # absent, or a date, which no inference server sends
            continue
        if 0 <= wait_s < float("inf"):
            return wait_s
    return None


def _retryable(status: int, headers: Mapping[str, str]) -> bool:
    said = headers.get("x-should-retry")
    return status in RETRYABLE if said is None else said.lower() == "true"


def _text(body: bytes) -> str:
    """Of a body that is no JSON; nothing of a page, whose first lines are markup."""
    text = body[:MAX_TEXT_BYTES].decode("utf-8", "replace").strip()
    return "" if text.startswith("<") else text


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None
