import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import (
    DeadlineExceeded,
    InvalidRequest,
    NotFound,
    Overloaded,
    RateLimited,
    ReplicaFailed,
    RequestError,
)
from modelyard.contract.operations import Operation
from modelyard.contract.render_error import body_for, headers_for, record_for, sse_error

FULL = NotFound("no model: list them", param="model", wire_code="model_not_found", reason="gone")


def test_native_routes_get_the_native_shape() -> None:
    error = Overloaded("full: try later", reason="queue_full", retry_after_s=2.5)
    assert record_for(error, "r-1", Operation.GENERATE) == {
        "code": "overloaded",
        "message": "full: try later",
        "retryable": True,
        "request_id": "r-1",
        "retry_after_s": 2.5,
    }
    assert "retry_after_s" not in record_for(FULL, "r-1", Operation.GENERATE)


@pytest.mark.parametrize("operation", [None, *(set(Operation) - {Operation.GENERATE})])
def test_other_routes_get_openais_shape_with_ours_in_it(operation: Operation | None) -> None:
    record = record_for(FULL, "r-1", operation)
    assert record["error"] == {
        "message": "no model: list them",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
        "modelyard_code": "not_found",
        "reason": "gone",
        "retryable": False,
        "request_id": "r-1",
    }
    assert ("detail" in record) == (operation is Operation.RERANK)


def test_rerank_clients_find_the_message_in_detail() -> None:
    assert record_for(FULL, "r-1", Operation.RERANK)["detail"] == "no model: list them"


@pytest.mark.parametrize("operation", [None, *Operation])
def test_a_body_is_json(operation: Operation | None) -> None:
    error = InvalidRequest('a "quoted" \u00e9 \u2028 text')
    body = json.loads(body_for(error, "r-1", operation))
    assert body == record_for(error, "r-1", operation)


@pytest.mark.parametrize("error_class", [RateLimited, Overloaded])
@given(
    wait_s=st.none()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.floats(0, 300)
    | st.integers(-5, 10**6)
)
def test_retry_after_is_a_whole_number_of_1_to_120_seconds(
    error_class: type[RequestError], wait_s: float | None
) -> None:
    headers = headers_for(error_class("later", retry_after_s=wait_s))
    assert headers["x-should-retry"] == "true"
    assert re.fullmatch(r"[0-9]+", headers["Retry-After"])
    assert re.fullmatch(r"[0-9]+", headers["retry-after-ms"])
    seconds, milliseconds = int(headers["Retry-After"]), int(headers["retry-after-ms"])
    assert 1 <= seconds <= 120
    assert 1 <= milliseconds <= 120_000
    assert milliseconds <= seconds * 1000
    if wait_s is not None and 0.001 <= wait_s <= 120:
        assert milliseconds == math.ceil(wait_s * 1000)
        assert seconds == max(1, math.ceil(wait_s))


@pytest.mark.parametrize("wait_s", [float("inf"), float("nan"), -1.0, 0.0, 1e9])
@pytest.mark.parametrize("operation", [None, *Operation])
def test_an_odd_wait_leaves_the_body_json(wait_s: float, operation: Operation | None) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    body = body_for(Overloaded("later", retry_after_s=wait_s), "r-1", operation)
    record: dict[str, Any] = json.loads(body, parse_constant=refuse)
    assert 0 < record.get("retry_after_s", 1) <= 120


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (InvalidRequest("no"), "false"),
        (DeadlineExceeded("late"), "false"),
        (DeadlineExceeded("late", retryable=True), "true"),
        (ReplicaFailed("gone"), "true"),
        (ReplicaFailed("gone", retryable=False), "false"),
    ],
)
def test_should_retry_is_said_on_every_error(error: RequestError, expected: str) -> None:
    assert headers_for(error) == {"x-should-retry": expected}


def test_an_overload_that_will_not_pass_gives_no_time_to_retry() -> None:
    error = Overloaded("never", retryable=False, retry_after_s=5)
    assert headers_for(error) == {"x-should-retry": "false"}


@pytest.mark.parametrize("partial", [True, False])
def test_a_native_stream_ends_with_an_error_event(partial: bool) -> None:
    data = sse_error(ReplicaFailed("it\ndied"), "r-1", Operation.GENERATE, partial=partial).decode()
    name, record, *rest = data.split("\n")
    assert (name, rest) == ("event: error", ["", ""])
    assert json.loads(record.removeprefix("data: ")) == {
        "code": "replica_failed",
        "message": "it\ndied",
        "retryable": True,
        "request_id": "r-1",
        "partial": partial,
    }


def test_an_openai_stream_gets_one_data_line() -> None:
    data = sse_error(FULL, "r-1", Operation.CHAT, partial=True).decode()
    assert data.startswith('data: {"error"')
    assert data.endswith("}\n\n")
    assert json.loads(data.removeprefix("data: "))["error"]["code"] == "model_not_found"


def test_the_error_event_of_responses_is_typed_and_raises_in_the_openai_client() -> None:
    data = sse_error(FULL, "r-1", Operation.RESPONSES, partial=True).decode()
    name, payload, *rest = data.split("\n")
    assert (name, rest) == ("event: error", ["", ""])
    record = json.loads(payload.removeprefix("data: "))
    assert record["type"] == "error"
    assert record["message"] == record["error"]["message"] == FULL.message
    assert record["code"] == (FULL.wire_code or FULL.code)
    assert record["error"] == record_for(FULL, "r-1", Operation.RESPONSES)["error"]
