"""/v1/responses through the real `openai` client, with a real model behind it."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

pytestmark = pytest.mark.integration

FRANCE = "What is the capital of France?"
SCHEMA = {
    "type": "object",
    "properties": {"order_id": {"type": "integer", "minimum": 1, "maximum": 9999}},
    "required": ["order_id"],
    "additionalProperties": False,
}
ORDER = {"type": "function", "name": "find_order", "parameters": SCHEMA, "strict": True}
FORCED = {"type": "function", "name": "find_order"}


def respond(client: openai.OpenAI, **options: Any) -> Any:
    responses: Any = client.responses
    asked = {"model": "support-assistant", "input": FRANCE, "temperature": 0}
    return responses.create(**asked | options)


def check_order(arguments: str) -> None:
    order = json.loads(arguments)
    assert order.keys() == {"order_id"}
    assert 1 <= order["order_id"] <= 9999


def test_an_answer_is_under_our_id_and_the_alias(
    openai_client: Any, platform: Any, wait_for: Any
) -> None:
    raw = openai_client.responses.with_raw_response.create(
        model="support-assistant",
        input=FRANCE,
        temperature=0,
        extra_headers={"X-Request-Id": "re-1"},
    )
    answer = raw.parse()
    assert "Paris" in answer.output_text
    assert (answer.model, answer.status) == ("support-assistant", "completed")
    assert raw.headers["x-model-version"] == "smollm2-135m-instruct@1.0.0"
    [line] = wait_for("its log line", lambda: platform.log_of("re-1"))
    assert answer.id == "resp_" + line["answer_id"]
    assert line["input_tokens"] == answer.usage.input_tokens > 0
    assert line["output_tokens"] == answer.usage.output_tokens > 0


def test_a_stream_is_typed_events_that_end_with_response_completed(openai_client: Any) -> None:
    whole = respond(openai_client)
    events = list(respond(openai_client, stream=True))
    kinds = [event.type for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    assert [event.sequence_number for event in events] == list(range(len(events)))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text
    assert {e.response.model for e in events if hasattr(e, "response")} == {"support-assistant"}
    assert len({e.response.id for e in events if hasattr(e, "response")}) == 1
    assert events[-1].response.usage.output_tokens == whole.usage.output_tokens


def test_the_clients_stream_helper_collects_the_answer(openai_client: Any) -> None:
    with openai_client.responses.stream(
        model="support-assistant", input=FRANCE, temperature=0, max_output_tokens=8
    ) as stream:
        answer = stream.get_final_response()
    assert answer.usage.output_tokens <= 8


def test_the_cap_makes_an_answer_incomplete(openai_client: Any) -> None:
    answer = respond(openai_client, max_output_tokens=3)
    assert answer.status == "incomplete"
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert (answer.usage.output_tokens, answer.max_output_tokens) == (3, 3)


def test_without_a_cap_the_routes_default_runs(openai_client: Any) -> None:
    assert respond(openai_client).max_output_tokens == 256
    with pytest.raises(openai.BadRequestError) as caught:
        respond(openai_client, max_output_tokens=100_000)
    assert caught.value.param == "max_output_tokens"


def test_a_conversation_is_sent_whole(openai_client: Any) -> None:
    first = respond(openai_client, instructions="Answer in one short sentence.")
    second = respond(
        openai_client,
        input=[
            {"role": "user", "content": FRANCE},
            *(item.model_dump() for item in first.output),
            {"role": "user", "content": [{"type": "input_text", "text": "And of Italy?"}]},
        ],
        max_output_tokens=12,
    )
    assert second.output_text
    assert second.usage.input_tokens > first.usage.input_tokens


def test_a_forced_tool_is_called_and_its_output_goes_back(openai_client: Any) -> None:
    asked: dict[str, Any] = {"tools": [ORDER], "max_output_tokens": 120}
    first = respond(openai_client, tool_choice=FORCED, **asked)
    [call] = first.output
    assert (call.type, call.name) == ("function_call", "find_order")
    check_order(call.arguments)
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "It is shipped."}
    turn = [{"role": "user", "content": "Where is my order?"}, call.model_dump(), output]
    second = respond(openai_client, input=turn, tool_choice="none", **asked)
    assert second.output_text


def test_a_streamed_call_adds_up_to_json_that_fits(openai_client: Any) -> None:
    events = list(
        respond(
            openai_client,
            tools=[ORDER],
            tool_choice=FORCED,
            max_output_tokens=120,
            stream=True,
        )
    )
    name = "response.function_call_arguments.delta"
    check_order("".join(event.delta for event in events if event.type == name))
    [call] = events[-1].response.output
    check_order(call.arguments)


def test_a_json_schema_is_obeyed(openai_client: Any) -> None:
    form = {"type": "json_schema", "name": "order", "schema": SCHEMA, "strict": True}
    answer = respond(openai_client, text={"format": form}, max_output_tokens=40)
    check_order(answer.output_text)
    assert answer.text.format.name == "order"


@pytest.mark.parametrize(
    ("options", "param", "code"),
    [
        ({"store": True}, "store", "unsupported"),
        ({"background": True}, "background", "unsupported"),
        ({"previous_response_id": "resp_1"}, "previous_response_id", "unsupported"),
        ({"conversation": "conv_1"}, "conversation", "unsupported"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt", "unsupported"),
        ({"tools": [{"type": "web_search"}]}, "tools", "unsupported"),
        ({"input": []}, "input", None),
        ({"input": "word " * 6000}, "input", "context_length_exceeded"),
        ({"extra_body": {"cache_salt": "x"}}, "cache_salt", None),
        ({"temperature": -1}, "temperature", None),
    ],
)
def test_a_wrong_request_names_its_field(
    openai_client: Any, options: dict[str, Any], param: str, code: str | None
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        respond(openai_client, **options)
    assert (caught.value.param, caught.value.code) == (param, code)


def test_a_client_that_asks_for_no_store_and_for_reasoning_is_answered(openai_client: Any) -> None:
    raw = openai_client.responses.with_raw_response.create(
        model="support-assistant",
        input=FRANCE,
        store=False,
        include=["reasoning.encrypted_content"],
        reasoning={"effort": "low"},
        metadata={"team": "support"},
        max_output_tokens=4,
    )
    assert raw.headers["x-ignored-fields"] == "reasoning"
    assert raw.parse().metadata == {"team": "support"}


def test_a_stream_that_is_left_stops_in_the_engine(
    openai_client: Any, platform: Any, wait_for: Any
) -> None:
    stream = respond(
        openai_client,
        stream=True,
        max_output_tokens=512,
        extra_body={"ignore_eos": True},
        extra_headers={"X-Request-Id": "re-gone"},
    )
    for event in stream:
        if event.type == "response.output_text.delta":
            break
    stream.close()
    [line] = wait_for("the end of re-gone", lambda: platform.log_of("re-gone"))
    assert line["status"] == 499
    assert 0 < line["output_tokens"] < 512
    wait_for(
        "an idle replica", lambda: platform.replica("smollm2-135m-instruct@1.0.0").ongoing == 0
    )
