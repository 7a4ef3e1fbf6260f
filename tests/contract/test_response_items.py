from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.messages import MAX_MESSAGES
from modelyard.contract.response_items import filter_input

CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}


def refused(value: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        filter_input(value)
    return caught.value


def message(content: Any, role: str = "user") -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content}


def test_text_is_text() -> None:
    assert filter_input("hello") == "hello"


def test_the_parts_of_a_message_become_one_text() -> None:
    parts = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    assert filter_input([{"role": "user", "content": parts}]) == [message("a\nb")]


def test_an_answer_may_be_sent_back_as_it_came() -> None:
    part: dict[str, Any] = {
        "type": "output_text",
        "text": "hi",
        "annotations": [],
        "logprobs": None,
    }
    answer = message([part], "assistant") | {"id": "msg_1", "status": "completed", "phase": None}
    refusal = message([{"type": "refusal", "refusal": "no"}], "assistant")
    call = CALL | {"id": "fc_1", "status": "completed", "namespace": None}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert filter_input([thought, answer, refusal, call]) == [
        message("hi", "assistant"),
        message("no", "assistant"),
        CALL,
    ]


def test_the_output_of_a_call_is_one_text() -> None:
    output = {"type": "function_call_output", "call_id": "c1", "output": "4", "id": "x"}
    parts = output | {"output": [{"type": "input_text", "text": "4"}]}
    kept = {"type": "function_call_output", "call_id": "c1", "output": "4"}
    assert filter_input([output, parts]) == [kept, kept]


@pytest.mark.parametrize("value", [None, "", [], 7, {}, [{"type": "reasoning", "summary": []}]])
def test_no_input_is_refused(value: Any) -> None:
    assert refused(value).param == "input"


def test_too_many_items_are_refused_by_their_number() -> None:
    assert refused([message("a")] * (MAX_MESSAGES + 1)).param == "input"


@pytest.mark.parametrize(
    ("item", "place"),
    [
        (7, "input[1]"),
        ({"role": "tool", "content": "a"}, "input[1]"),
        ({"role": "user"}, "input[1].content"),
        (message([{"type": "input_image", "image_url": "http://x"}]), "input[1].content"),
        (
            message([{"type": "input_text", "text": "a", "image_url": "http://x"}]),
            "input[1].content",
        ),
        (message("a") | {"image_url": "http://x"}, "input[1]"),
        (CALL | {"arguments": {}}, "input[1].arguments"),
        ({"type": "function_call_output", "call_id": 1, "output": "a"}, "input[1].call_id"),
        ({"type": "item_reference", "id": "msg_1"}, "input[1]"),
        ({"type": "mcp_call"}, "input[1]"),
        ({"type": ["message"]}, "input[1]"),
    ],
)
def test_what_is_not_text_is_refused_and_its_place_named(item: Any, place: str) -> None:
    assert refused([message("a"), item]).param == place


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(["type", "role", "content", "call_id", "name", "arguments", "output"])
KINDS = st.sampled_from(["message", "function_call", "function_call_output", "reasoning"])


@given(st.lists(st.dictionaries(KEYS, JSON | KINDS, max_size=4), max_size=4))
def test_any_items_are_rebuilt_or_refused(items: list[dict[str, Any]]) -> None:
    try:
        kept = filter_input(items)
    except InvalidRequest:
        return
    assert all(isinstance(value, str) for item in kept for value in item.values())
