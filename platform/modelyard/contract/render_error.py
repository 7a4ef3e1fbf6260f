"""An error as a body and headers, in the shape that the route's clients read."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from modelyard.contract.errors import RequestError
from modelyard.contract.headers import SHOULD_RETRY
from modelyard.contract.operations import Operation

MIN_RETRY_AFTER_S: Final = 1
MAX_RETRY_AFTER_S: Final = 120  # the openai client gives up on a longer one
_RERANK: Final = frozenset((Operation.RERANK,))


def native_record(error: RequestError, request_id: str) -> dict[str, Any]:
    record: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
        "request_id": request_id,
    }
    if error.retry_after_s is not None:
        record["retry_after_s"] = _wait_s(error)
    return record


def openai_record(
    error: RequestError, request_id: str, operation: Operation | None = None
) -> dict[str, Any]:
    """OpenAI's `error` object with ours beside it. Rerank clients also read a top `detail`."""
    record: dict[str, Any] = {
        "error": {
            "message": error.message,
            "type": error.openai_type,
            "param": error.param,
            "code": error.wire_code,
            "modelyard_code": error.code,
            "reason": error.reason,
            "retryable": error.retryable,
            "request_id": request_id,
        }
    }
    if operation in _RERANK:
        record["detail"] = error.message
    return record


def record_for(error: RequestError, request_id: str, operation: Operation | None) -> dict[str, Any]:
    if operation is Operation.GENERATE:
        return native_record(error, request_id)
    return openai_record(error, request_id, operation)


def body_for(error: RequestError, request_id: str, operation: Operation | None) -> bytes:
    return json.dumps(record_for(error, request_id, operation), ensure_ascii=False).encode()


def headers_for(error: RequestError) -> dict[str, str]:
    """x-should-retry always (the openai client obeys it); Retry-After on what is worth retrying."""
    headers = error.headers | {SHOULD_RETRY: "true" if error.retryable else "false"}
    if error.retryable and (error.status in (429, 503) or error.retry_after_s is not None):
        wait_s = _wait_s(error)
        headers["Retry-After"] = str(max(MIN_RETRY_AFTER_S, math.ceil(wait_s)))
        headers["retry-after-ms"] = str(math.ceil(wait_s * 1000))
    return headers


def _wait_s(error: RequestError) -> float:
    """What is sent of retry_after_s. Measured elsewhere: it may be 0, negative, NaN or infinite."""
    wait_s = error.retry_after_s
    if wait_s is None or not wait_s > 0:
        return MIN_RETRY_AFTER_S
    return min(wait_s, MAX_RETRY_AFTER_S)


def sse_error(
    error: RequestError, request_id: str, operation: Operation, *, partial: bool
) -> bytes:
    """The in-band error of a stream: an `error` event, or one `data:` line of OpenAI's."""
    if operation is Operation.GENERATE:
        record = native_record(error, request_id) | {"partial": partial}
        return b"event: error\ndata: " + json.dumps(record, ensure_ascii=False).encode() + b"\n\n"
    record = openai_record(error, request_id)
    if operation is Operation.RESPONSES:
        # OpenAI's typed event, and beside it the object at which its client raises.
        event: dict[str, Any] = {"type": "error", "code": error.wire_code or error.code}
        event |= {"message": error.message, "param": error.param} | record
        return b"event: error\ndata: " + json.dumps(event, ensure_ascii=False).encode() + b"\n\n"
    return b"data: " + json.dumps(record, ensure_ascii=False).encode() + b"\n\n"
