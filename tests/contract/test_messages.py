from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.messages import MAX_MESSAGES, ROLES, filter_messages

CALL: dict[str, Any] = {
    "id": "c1",
    "type": "function",
    "function": {"name": "f", "arguments": "{}"},
}


def refused(message: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        filter_messages([message])
    assert "secret" not in caught.value.message
    return caught.value


def test_an_answer_sent_back_as_the_openai_client_has_it_passes_without_its_extras() -> None:
    answer: dict[str, Any] = {
        "role": "assistant",
        "content": "hi",
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": None,
        "reasoning": "because",
        "reasoning_content": "because",
    }
    assert filter_messages([answer]) == [{"role": "assistant", "content": "hi"}]


def test_a_round_of_tools_passes_with_a_text_for_a_null_content() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "developer", "content": "be kind", "name": "boss"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "content": [{"type": "text", "text": "4"}], "tool_call_id": "c1"},
    ]
    rebuilt = filter_messages(messages)
    assert [rebuilt[0], rebuilt[2]] == [messages[0], messages[2]]
    # Templates add the content to a text: null would be an error of theirs.
    assert rebuilt[1] == messages[1] | {"content": ""}


def test_a_tool_call_keeps_what_openai_defines_and_nothing_else() -> None:
    call = CALL | {"index": 0, "image_url": "http://x", "function": CALL["function"] | {"x": 1}}
    (message,) = filter_messages([{"role": "assistant", "tool_calls": [call]}])
    assert message["tool_calls"] == [CALL]


@pytest.mark.parametrize("key", ["audio", "function_call", "image_url", "uuid", "prefix"])
def test_any_other_key_is_named(key: str) -> None:
    error = refused({"role": "user", "content": "x", key: "secret"})
    assert error.param == "messages[0]"
    assert key in error.message


@pytest.mark.parametrize("role", [None, "", "robot", "function", ["user"], {"a": 1}, 5])
def test_a_role_is_one_of_openais(role: object) -> None:
    assert all(name in refused({"role": role, "content": "x"}).message for name in ROLES)


@pytest.mark.parametrize(
    "content", [5, {}, True, [None], [{}], [{"type": "text", "text": None}], [[]], ["secret"]]
)
def test_content_is_text_nothing_or_text_parts(content: object) -> None:
    assert refused({"role": "user", "content": content}).param == "messages[0].content"


@pytest.mark.parametrize(
    "calls",
    [
        "x",
        {},
        [None],
        [{}],
        [CALL | {"type": "custom"}],
        [CALL | {"id": None}],
        [CALL | {"function": {"name": "f", "arguments": {}}}],
        [CALL | {"function": {"arguments": "{}"}}],
    ],
)
def test_a_tool_call_has_its_types(calls: object) -> None:
    error = refused({"role": "assistant", "tool_calls": calls})
    assert error.param is not None
    assert error.param.startswith("messages[0].tool_calls")


@pytest.mark.parametrize("key", ["name", "tool_call_id", "refusal"])
def test_a_text_key_is_text(key: str) -> None:
    assert refused({"role": "user", key: ["secret"]}).param == f"messages[0].{key}"


def test_messages_are_bounded_in_number() -> None:
    message = {"role": "user", "content": "x"}
    assert len(filter_messages([message] * MAX_MESSAGES)) == MAX_MESSAGES
    with pytest.raises(InvalidRequest, match="4097"):
        filter_messages([message] * (MAX_MESSAGES + 1))


KEYS = st.sampled_from(["role", "content", "type", "text", "tool_calls", "function", "name", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["user", "text", "function", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_messages_or_a_request_error(value: Any) -> None:
    try:
        messages = filter_messages(value)
    except InvalidRequest:
        return
    assert filter_messages(messages) == messages
