import json
from typing import Any

import pytest
from pydantic import ValidationError

from modelyard.contract.envelope import Usage
from modelyard.contract.native import (
    GenerateRequest,
    answer,
    delta_event,
    done_event,
    usage_record,
)

BODY: dict[str, Any] = {
    "model": "chat",
    "conversation_id": "c-1",
    "messages": [{"role": "user", "content": "hello"}],
    "max_output_tokens": 32,
}


def parsed(**changes: Any) -> GenerateRequest:
    return GenerateRequest.model_validate_json(json.dumps(BODY | changes))


def test_the_smallest_request_has_the_documented_defaults() -> None:
    request = parsed()
    assert (request.stream, request.deadline_ms, request.temperature) == (False, None, None)


@pytest.mark.parametrize("name", BODY)
def test_each_required_field_is_required(name: str) -> None:
    record = {key: value for key, value in BODY.items() if key != name}
    with pytest.raises(ValidationError) as caught:
        GenerateRequest.model_validate_json(json.dumps(record))
    assert caught.value.errors()[0]["loc"] == (name,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", ""),
        ("conversation_id", ""),
        ("conversation_id", "c" * 257),
        ("messages", []),
        ("messages", [{"role": "robot", "content": "x"}]),
        ("messages", [{"role": "user", "content": [{"type": "text", "text": "x"}]}]),
        ("messages", [{"role": "user", "content": "x", "name": "y"}]),
        ("max_output_tokens", 0),
        ("max_output_tokens", True),
        ("max_output_tokens", "32"),
        ("max_output_tokens", 1.5),
        ("stream", 1),
        ("stream", "true"),
        ("deadline_ms", 0),
        ("deadline_ms", True),
        ("temperature", 2.1),
        ("temperature", -0.1),
        ("top_p", 0),
        ("top_k", -2),
        ("min_p", 1.1),
        ("presence_penalty", 2.5),
        ("frequency_penalty", -2.5),
        ("repetition_penalty", 0),
        ("stop", "one"),
        ("stop", ["x"] * 5),
        ("stop", [""]),
        ("messages", [{"role": "user", "content": "x"}] * 4097),
        ("messages", ["x"]),
        ("seed", 2**63),
        ("priority", 1),
    ],
)
def test_a_field_out_of_its_bounds_is_refused(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        parsed(**{field: value})


def test_the_chat_form_keeps_what_shapes_the_answer_and_nothing_else() -> None:
    chat = parsed(stream=True, deadline_ms=5, temperature=0.5, stop=["x"], seed=7).as_chat()
    assert chat == {
        "messages": [{"role": "user", "content": "hello"}],
        "max_completion_tokens": 32,
        "temperature": 0.5,
        "stop": ["x"],
        "seed": 7,
    }


def event(data: bytes) -> tuple[str, dict[str, Any]]:
    name, record, *rest = data.decode().split("\n")
    assert rest == ["", ""]
    return name.removeprefix("event: "), json.loads(record.removeprefix("data: "))


def test_a_delta_is_one_event_whatever_the_text_holds() -> None:
    text = "two\nlines, \u2028 and \u00e9"
    assert event(delta_event(0, text)) == ("delta", {"index": 0, "text": text})


def test_a_done_event_names_version_reason_and_usage() -> None:
    assert event(done_event("gen@1", Usage(3, 5, "length", 2))) == (
        "done",
        {
            "finish_reason": "length",
            "model_version": "gen@1",
            "usage": {"input_tokens": 3, "output_tokens": 5},
        },
    )


def test_a_unary_answer_has_the_seeds_fields() -> None:
    assert json.loads(answer("id-1", "gen@1", "hi", Usage(3, 5))) == {
        "id": "id-1",
        "model_version": "gen@1",
        "output": "hi",
        "finish_reason": "stop",
        "usage": usage_record(Usage(3, 5)),
    }
