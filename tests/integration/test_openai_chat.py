"""Chat through the real `openai` client, with a real model behind it."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

pytestmark = pytest.mark.integration

FRANCE: Any = [{"role": "user", "content": "What is the capital of France?"}]
WEATHER: Any = [{"role": "user", "content": "What is the weather in Paris, and what time is it?"}]
ORDER_SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "integer", "minimum": 1, "maximum": 9999},
        "reason": {"enum": ["late", "broken", "wrong"]},
    },
    "required": ["order_id", "reason"],
    "additionalProperties": False,
}
CITY_SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 12, "pattern": "^[A-Z][a-z]+$"}},
    "required": ["city"],
    "additionalProperties": False,
}


def tool(name: str, parameters: dict[str, Any]) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


ORDER = tool("find_order", ORDER_SCHEMA)
CITY = tool("get_weather", CITY_SCHEMA)
FORCED: Any = {"type": "function", "function": {"name": "find_order"}}


def chat(client: openai.OpenAI, **options: Any) -> Any:
    completions: Any = client.chat.completions  # its overloads want every option spelled out
    asked = {"model": "support-assistant", "messages": FRANCE, "temperature": 0} | options
    return completions.create(**asked)


def check_order(arguments: str) -> None:
    """The JSON parses and obeys ORDER_SCHEMA."""
    order = json.loads(arguments)
    assert order.keys() == {"order_id", "reason"}
    assert isinstance(order["order_id"], int)
    assert 1 <= order["order_id"] <= 9999
    assert order["reason"] in ("late", "broken", "wrong")


def check_city(arguments: str) -> None:
    """The JSON parses and obeys CITY_SCHEMA."""
    record = json.loads(arguments)
    assert record.keys() == {"city"}
    assert record["city"].istitle()
    assert len(record["city"]) <= 12


CHECKS = {"find_order": check_order, "get_weather": check_city}


def test_a_chat_answers_under_the_alias_and_names_the_version(openai_client: Any) -> None:
    raw = openai_client.chat.completions.with_raw_response.create(
        model="support-assistant",
        messages=FRANCE,
        temperature=0,
    )
    answer = raw.parse()
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.model == "support-assistant"
    assert (answer.system_fingerprint or "").startswith("smollm2-135m-instruct@1.0.0+")
    assert raw.headers["x-model-version"] == "smollm2-135m-instruct@1.0.0"
    assert raw.headers["x-rollout-arm"] == "stable"
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


def test_a_streamed_chat_says_the_same_and_ends_with_usage(openai_client: Any) -> None:
    whole = chat(openai_client)
    chunks = list(chat(openai_client, stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert {chunk.model for chunk in chunks} == {"support-assistant"}
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens
    assert len(chunks) > 4


def test_a_stream_without_stream_options_has_no_usage(openai_client: Any) -> None:
    chunks = list(chat(openai_client, stream=True, max_tokens=3))
    assert all(chunk.choices for chunk in chunks)
    assert [chunk.usage for chunk in chunks if chunk.usage] == []


def test_a_chat_without_a_cap_runs_to_the_routes_default(openai_client: Any) -> None:
    answer = chat(openai_client, extra_body={"ignore_eos": True})
    assert answer.usage.completion_tokens == 256
    assert answer.choices[0].finish_reason == "length"


def test_several_choices_and_their_log_probabilities(openai_client: Any) -> None:
    answer = chat(
        openai_client, n=2, temperature=0.7, seed=7, logprobs=True, top_logprobs=2, max_tokens=4
    )
    assert [choice.index for choice in answer.choices] == [0, 1]
    for choice in answer.choices:
        tokens = choice.logprobs.content
        assert len(tokens) == 4
        assert all(len(token.top_logprobs) == 2 and token.logprob <= 0 for token in tokens)
    assert answer.usage.completion_tokens == 8


def test_streamed_choices_keep_their_places(openai_client: Any) -> None:
    options: dict[str, Any] = {"n": 2, "temperature": 0.9, "seed": 7, "max_tokens": 4}
    chunks = list(chat(openai_client, stream=True, logprobs=True, **options))
    ends = {c.choices[0].index: c.choices[0].finish_reason for c in chunks if c.choices}
    assert ends == {0: "length", 1: "length"}
    assert any(c.choices[0].logprobs for c in chunks if c.choices)


def test_the_same_seed_gives_the_same_answer(openai_client: Any) -> None:
    def sampled(seed: int) -> str:
        options: dict[str, Any] = {"temperature": 1.5, "seed": seed, "max_tokens": 12}
        return str(chat(openai_client, **options).choices[0].message.content)

    assert sampled(7) == sampled(7)
    assert len({sampled(seed) for seed in (7, 8, 9)}) > 1


@pytest.mark.parametrize("stop", [" is", [" is", "never said"]])
def test_a_stop_ends_the_answer_before_itself(openai_client: Any, stop: Any) -> None:
    answer = chat(openai_client, stop=stop)
    assert answer.choices[0].message.content == "The capital of France"
    assert answer.choices[0].finish_reason == "stop"


def test_the_engines_own_sampling_fields_are_read(openai_client: Any) -> None:
    sampling: dict[str, Any] = {
        "top_k": 1,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "min_tokens": 12,
        "skip_special_tokens": True,
    }
    raw = openai_client.chat.completions.with_raw_response.create(
        model="support-assistant",
        messages=FRANCE,
        max_tokens=12,
        temperature=1,
        extra_body=sampling,
    )
    assert raw.parse().usage.completion_tokens == 12  # min_tokens: its own end comes before
    assert "x-ignored-fields" not in raw.headers


def test_a_json_schema_is_obeyed(openai_client: Any) -> None:
    form = {"name": "order", "schema": ORDER_SCHEMA, "strict": True}
    answer = chat(
        openai_client,
        max_tokens=60,
        response_format={"type": "json_schema", "json_schema": form},
    )
    check_order(answer.choices[0].message.content)


def test_a_json_object_is_one(openai_client: Any) -> None:
    answer = chat(
        openai_client,
        max_tokens=12,
        response_format={"type": "json_object"},
        extra_body={"structured_outputs": None},
    )
    assert answer.choices[0].message.content.lstrip().startswith("{")


@pytest.mark.parametrize(
    ("constraint", "possible"),
    [
        ({"choice": ["refund", "invoice"]}, {"refund", "invoice"}),
        ({"regex": "(yes|no)!"}, {"yes!", "no!"}),
        ({"grammar": 'root ::= "left" | "right"'}, {"left", "right"}),
        ({"json": {"enum": ["red", "blue"]}}, {'"red"', '"blue"'}),
    ],
)
def test_structured_outputs_are_obeyed(
    openai_client: Any, constraint: dict[str, Any], possible: set[str]
) -> None:
    answer = chat(openai_client, max_tokens=12, extra_body={"structured_outputs": constraint})
    assert answer.choices[0].message.content in possible


def test_a_forced_tool_is_called_with_arguments_that_fit_its_schema(openai_client: Any) -> None:
    answer = chat(openai_client, tools=[ORDER], tool_choice=FORCED, max_tokens=120)
    [call] = answer.choices[0].message.tool_calls
    assert call.function.name == "find_order"
    check_order(call.function.arguments)


def test_a_required_call_is_one_of_the_tools(openai_client: Any) -> None:
    answer = chat(
        openai_client,
        messages=WEATHER,
        tools=[ORDER, CITY],
        tool_choice="required",
        parallel_tool_calls=False,
        max_tokens=120,
    )
    [call] = answer.choices[0].message.tool_calls
    CHECKS[call.function.name](call.function.arguments)
    assert answer.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("parallel", [True, False])
def test_calls_come_in_parallel_unless_that_is_not_wanted(
    openai_client: Any, parallel: bool
) -> None:
    """min_tokens is longer than one call, and this small model then repeats it up to the cap."""
    chunks = chat(
        openai_client,
        messages=WEATHER,
        tools=[ORDER, CITY],
        tool_choice="required",
        parallel_tool_calls=parallel,
        max_tokens=200,
        extra_body={"min_tokens": 90},
        stream=True,
    )
    calls = streamed_calls(chunks)
    assert (len(calls) > 1) is parallel
    for name, arguments in calls[:-1] if parallel else calls:
        CHECKS[name](arguments)


def streamed_calls(chunks: Any) -> list[tuple[str, str]]:
    """Name and arguments by the index that each piece carries."""
    calls: dict[int, tuple[str, str]] = {}
    for chunk in chunks:
        for call in chunk.choices[0].delta.tool_calls or []:
            name, arguments = calls.get(call.index, ("", ""))
            function = call.function
            calls[call.index] = (
                name + (function.name or ""),
                arguments + (function.arguments or ""),
            )
    return [calls[index] for index in sorted(calls)]


def test_a_model_that_is_not_shown_its_tools_says_so(openai_client: Any) -> None:
    """SmolLM2's template leaves tools out: left to itself it would never call one."""
    for options in ({}, {"tool_choice": "auto"}):
        with pytest.raises(openai.BadRequestError) as caught:
            chat(openai_client, tools=[ORDER], **options)
        assert (caught.value.param, caught.value.code) == ("tool_choice", "unsupported")
        assert "required" in caught.value.message


def test_streamed_arguments_add_up_to_json_that_fits(openai_client: Any) -> None:
    chunks = chat(openai_client, tools=[ORDER], tool_choice=FORCED, max_tokens=120, stream=True)
    kept = list(chunks)
    [(name, arguments)] = streamed_calls(kept)
    assert name == "find_order"
    check_order(arguments)
    assert sum(bool(chunk.choices[0].delta.tool_calls) for chunk in kept) > 2


def test_a_round_of_tools_goes_on_with_the_result(openai_client: Any) -> None:
    """The assistant's message goes back as the client has it, with a content of null."""
    first = chat(openai_client, tools=[ORDER], tool_choice=FORCED, max_tokens=120)
    message = first.choices[0].message.model_dump()
    assert message["content"] in (None, "")
    result = {
        "role": "tool",
        "tool_call_id": message["tool_calls"][0]["id"],
        "content": "The order was shipped on Monday.",
    }
    second = chat(
        openai_client,
        messages=[*FRANCE, message | {"content": None}, result],
        tools=[ORDER],
        tool_choice="none",
        max_tokens=20,
    )
    assert second.choices[0].message.content
    assert not second.choices[0].message.tool_calls
