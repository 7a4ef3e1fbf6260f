from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import InvalidRequest, RequestError
from modelyard.contract.openai import (
    FIELDS,
    INSTEAD,
    MAX_N,
    MAX_PROMPTS,
    PLATFORM,
    Fields,
    filter_fields,
)
from modelyard.contract.operations import Operation
from modelyard.contract.ranges import FLAGS

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
COMPLETION: dict[str, Any] = {"model": "m", "prompt": "hello"}
RESPONSE: dict[str, Any] = {"model": "m", "input": "hello"}
BODIES = {
    Operation.CHAT: CHAT,
    Operation.COMPLETIONS: COMPLETION,
    Operation.RESPONSES: RESPONSE,
}
FUNCTION = {"name": "f", "parameters": {"type": "object"}}
TOOLS: dict[Operation, list[dict[str, Any]]] = {
    Operation.CHAT: [{"type": "function", "function": FUNCTION}],
    Operation.RESPONSES: [{"type": "function", "strict": True} | FUNCTION],
}


def chat(**changes: Any) -> Fields:
    return filter_fields(Operation.CHAT, CHAT | changes)


def refused(operation: Operation, body: dict[str, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        filter_fields(operation, body)
    return caught.value


def test_the_smallest_bodies_pass() -> None:
    assert chat() == Fields({"messages": CHAT["messages"]}, (), False, None, "max_tokens")
    completion = filter_fields(Operation.COMPLETIONS, COMPLETION)
    assert completion.passed == {"prompt": "hello"}


@pytest.mark.parametrize("operation", FIELDS)
@pytest.mark.parametrize(
    "name",
    [*sorted(PLATFORM), "chat_template_content_format", "mm_processor_kwargs", "mm_x"],
)
def test_a_field_of_the_platform_is_refused_by_name(operation: Operation, name: str) -> None:
    error = refused(operation, BODIES[operation] | {name: 1})
    assert error.param == name
    assert "set by the platform" in error.message


@pytest.mark.parametrize("name", ["guided_json", "guided_regex", "guided_"])
def test_guided_fields_name_their_successor(name: str) -> None:
    error = refused(Operation.CHAT, CHAT | {name: {}})
    assert error.param == name
    assert "structured_outputs" in error.message


@pytest.mark.parametrize("name", sorted(INSTEAD))
def test_a_field_that_is_not_offered_says_what_is(name: str) -> None:
    error = refused(Operation.CHAT, CHAT | {name: []})
    assert error.param == name
    assert INSTEAD[name] in error.message


@pytest.mark.parametrize("name", [*sorted(PLATFORM), *sorted(INSTEAD), "guided_json", "n", "x"])
def test_null_equals_absent(name: str) -> None:
    assert chat(**{name: None}) == chat()


@pytest.mark.parametrize("operation", FIELDS)
def test_every_field_of_the_allow_list_passes_unchanged(operation: Operation) -> None:
    flags = dict.fromkeys(FLAGS & FIELDS[operation], True)
    given: dict[str, Any] = (
        dict.fromkeys(FIELDS[operation], 1)
        | flags
        | {
            "stop": ["x"],
            "logit_bias": {"7": -100},
            "stop_token_ids": [1],
            "response_format": {"type": "json_object"},
            "structured_outputs": {"choice": ["a", "b"]},
            "tools": TOOLS.get(operation),
            "tool_choice": "required",
            "instructions": "be kind",
            "include": ["message.output_text.logprobs"],
            "text": {"format": {"type": "json_object"}},
            "metadata": {"team": "support"},
        }
    )
    given = {name: given[name] for name in FIELDS[operation] - {"messages", "prompt", "input"}}
    fields = filter_fields(operation, BODIES[operation] | given)
    assert given.items() <= fields.passed.items()


def test_fields_nobody_reads_are_named_in_order_and_not_passed() -> None:
    fields = chat(zebra=1, apple=2, user="u", prompt_cache_key="k", metadata={})
    assert fields.ignored == ("apple", "metadata", "zebra")
    assert fields.passed == {"messages": CHAT["messages"]}


def test_a_field_of_the_other_route_is_ignored() -> None:
    assert chat(echo=True, prompt="x").ignored == ("echo", "prompt")
    completion = filter_fields(Operation.COMPLETIONS, COMPLETION | {"tools": []})
    assert completion.ignored == ("tools",)


@pytest.mark.parametrize("value", [1, MAX_N])
def test_n_within_its_bounds_passes(value: int) -> None:
    assert chat(n=value).passed["n"] == value


@pytest.mark.parametrize("value", [0, -1, MAX_N + 1, 10**400, True, False, 1.0, "2", [2]])
def test_n_out_of_its_bounds_is_refused(value: object) -> None:
    assert refused(Operation.CHAT, CHAT | {"n": value}).param == "n"


@pytest.mark.parametrize("value", [1, 0, "true", "", []])
def test_stream_must_be_a_boolean(value: object) -> None:
    assert refused(Operation.CHAT, CHAT | {"stream": value}).param == "stream"


@pytest.mark.parametrize("value", [True, False])
def test_stream_is_read_and_passed(value: bool) -> None:
    fields = chat(stream=value)
    assert (fields.stream, fields.passed["stream"]) == (value, value)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_either_cap_is_read_and_not_passed(name: str) -> None:
    fields = chat(**{name: 7})
    assert (fields.cap_tokens, fields.cap_param) == (7, name)
    assert name not in fields.passed
    assert fields.ignored == ()


@pytest.mark.parametrize("old", [3, 9])
def test_of_both_caps_the_newer_one_runs(old: int) -> None:
    fields = chat(max_tokens=old, max_completion_tokens=7)
    assert (fields.cap_tokens, fields.cap_param) == (7, "max_completion_tokens")


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "7", {}])
def test_a_cap_must_be_a_whole_number(name: str, value: object) -> None:
    assert refused(Operation.CHAT, CHAT | {name: value}).param == name


def test_a_wrong_older_cap_is_refused_even_beside_a_newer_one() -> None:
    body = CHAT | {"max_tokens": 0, "max_completion_tokens": 7}
    assert refused(Operation.CHAT, body).param == "max_tokens"


@pytest.mark.parametrize("messages", [None, [], {}, "hello", 5, True])
def test_messages_must_be_a_list_with_something_in_it(messages: object) -> None:
    assert refused(Operation.CHAT, {"messages": messages}).param == "messages"


@pytest.mark.parametrize("message", [None, "hello", [], 5])
def test_a_message_must_be_an_object(message: object) -> None:
    body = {"messages": [*CHAT["messages"], message]}
    assert refused(Operation.CHAT, body).param == "messages[1]"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "http://169.254.169.254/"}},
        {"type": "input_audio", "input_audio": {}},
        {"type": "video_url", "video_url": {"url": "file:///etc/passwd"}},
        {"image_url": "http://169.254.169.254/"},
        {"type": ["text"]},
        {"type": None, "text": "x"},
        "text",
        None,
        [],
        # The engine takes it for an image, whatever its type says.
        {"type": "text", "text": "x", "uuid": "u", "image_url": "http://169.254.169.254/"},
        {"type": "text", "image_url": "http://169.254.169.254/"},
        {"type": "text", "text": None},
        {"type": "text", "text": {"image_url": "http://169.254.169.254/"}},
        {"type": "text", "refusal": "x"},
    ],
)
def test_a_part_that_is_not_text_is_refused(part: object) -> None:
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, part]}]}
    error = refused(Operation.CHAT, body)
    assert error.param == "messages[0].content"
    assert "169.254" not in error.message


def test_text_parts_and_empty_content_pass() -> None:
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": "", "tool_calls": []},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]
    passed = chat(messages=messages).passed["messages"]
    assert passed == messages
    assert passed[0] is not messages[0]


@pytest.mark.parametrize(
    "prompt", ["hello", [1, 2], ["a", "b"], [[1], [2, 3]], ["a"] * MAX_PROMPTS, [1] * 5000]
)
def test_every_documented_shape_of_prompt_passes(prompt: object) -> None:
    fields = filter_fields(Operation.COMPLETIONS, {"prompt": prompt})
    assert fields.passed["prompt"] == prompt


@pytest.mark.parametrize(
    "prompt",
    [
        None,
        "",
        [],
        {},
        5,
        True,
        [[]],
        [""],
        [None],
        [{}],
        [True],
        [[True]],
        [1.5],
        [-1],
        [[[1]]],
        [1, "a"],
        ["a", 1],
        ["a", [1]],
        [[1], "a"],
        [[1], []],
        ["a"] * (MAX_PROMPTS + 1),
        [1] * 131_073,
        [[1] * 70_000] * 2,
        [[1]] * (MAX_PROMPTS + 1),
    ],
)
def test_every_other_shape_of_prompt_is_refused(prompt: object) -> None:
    assert refused(Operation.COMPLETIONS, {"prompt": prompt}).param == "prompt"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(sorted(set().union(*FIELDS.values()))) | st.sampled_from(
    ["max_tokens", "max_completion_tokens", "priority", "guided_json", "best_of", "store"]
)


@pytest.mark.parametrize("operation", FIELDS)
@given(data=st.data())
def test_any_json_object_is_filtered_or_refused_with_a_request_error(
    operation: Operation, data: st.DataObject
) -> None:
    body = data.draw(st.dictionaries(NAMES | st.text(), VALUES, max_size=6))
    if data.draw(st.booleans()):
        body |= {"messages": [{"role": "user", "content": data.draw(VALUES)}]}
    try:
        fields = filter_fields(operation, body)
    except RequestError:
        return
    assert set(fields.passed) <= FIELDS[operation]
    assert None not in fields.passed.values()
    assert not set(fields.ignored) & set(fields.passed)


def test_each_route_has_its_own_names_for_the_cap() -> None:
    fields = filter_fields(Operation.RESPONSES, RESPONSE | {"max_output_tokens": 7, "n": 3})
    assert (fields.cap_tokens, fields.cap_param) == (7, "max_output_tokens")
    assert fields.ignored == ("n",)
    assert chat(max_output_tokens=7).ignored == ("max_output_tokens",)
    error = refused(Operation.RESPONSES, RESPONSE | {"max_output_tokens": 0})
    assert error.param == "max_output_tokens"


@pytest.mark.parametrize("bare", [{}, {"parameters": None}, {"parameters": {}}])
def test_a_function_without_parameters_takes_an_empty_object(bare: dict[str, Any]) -> None:
    tools = [{"type": "function", "function": {"name": "f"} | bare}]
    function = chat(tools=tools).passed["tools"][0]["function"]
    assert function == {"name": "f", "parameters": {"type": "object", "properties": {}}}


def test_a_suffix_is_refused_by_name() -> None:
    assert refused(Operation.COMPLETIONS, COMPLETION | {"suffix": "!"}).param == "suffix"
