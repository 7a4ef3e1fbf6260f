from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.operations import Operation
from modelyard.routing.conversation import MAX_CHARACTERS, conversation_key

SYSTEM = {"role": "system", "content": "Be brief."}
HELLO = {"role": "user", "content": "Hello"}
REPLY = {"role": "assistant", "content": "Hello, how can I help?"}
NEXT = {"role": "user", "content": "What is the time?"}


def key(
    body: dict[str, Any],
    operation: Operation = Operation.CHAT,
    tenant: str = "alpha",
    **headers: str,
) -> str:
    given = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return conversation_key(operation, body, given, tenant)


def test_the_turns_of_a_conversation_share_its_key() -> None:
    first = key({"messages": [SYSTEM, HELLO]})
    assert first == key({"messages": [SYSTEM, HELLO, REPLY, NEXT]})
    assert first != key({"messages": [SYSTEM, NEXT]})
    assert first != key({"messages": [HELLO]})


def test_the_same_words_of_another_user_or_tenant_are_another_conversation() -> None:
    body = {"messages": [HELLO]}
    keys = {key(body), key(body, tenant="beta"), key(body | {"user": "ann"})}
    assert len(keys) == 3


def test_an_explicit_name_wins_over_the_words_and_the_header_over_the_body() -> None:
    named = {"messages": [HELLO], "prompt_cache_key": "c-1"}
    assert key(named) == key({"messages": [NEXT], "prompt_cache_key": "c-1"})
    assert key(named, X_Conversation_Id="c-2") == key({"messages": []}, X_Conversation_Id="c-2")
    assert key(named) != key(named, X_Conversation_Id="c-2")


def test_the_native_routes_own_field_comes_first() -> None:
    body = {"messages": [HELLO], "conversation_id": "c-1"}
    native = key(body, Operation.GENERATE, X_Conversation_Id="c-2")
    assert native == key(body, Operation.GENERATE)
    assert key(body, X_Conversation_Id="c-2") != native, "elsewhere it is an unknown field"


@pytest.mark.parametrize("operation", [Operation.EMBED, Operation.CLASSIFY, Operation.RERANK])
def test_a_small_models_request_stands_alone_unless_its_header_says_otherwise(
    operation: Operation,
) -> None:
    assert key({"input": "x", "prompt_cache_key": "c-1"}, operation) == ""
    assert key({"input": "x"}, operation, X_Conversation_Id="c-1") != ""


@pytest.mark.parametrize("value", [5, "", ["c"], "c" * (MAX_CHARACTERS + 1)])
def test_a_name_that_is_none_is_refused(value: Any) -> None:
    with pytest.raises(InvalidRequest) as caught:
        key({"messages": [HELLO], "prompt_cache_key": value})
    assert caught.value.param == "prompt_cache_key"


def test_the_turns_of_a_response_share_its_key_however_the_first_was_written() -> None:
    def turn(given: Any) -> str:
        return key({"instructions": "Be brief.", "input": given}, Operation.RESPONSES)

    parts = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Hello"}],
    }
    assert turn("Hello") == turn([HELLO]) == turn([HELLO, REPLY, NEXT]) == turn([parts, REPLY])
    assert turn("Hello") != key({"input": "Hello"}, Operation.RESPONSES)


def test_a_completion_belongs_to_no_conversation_unless_it_names_one() -> None:
    assert key({"prompt": "Once upon a time"}, Operation.COMPLETIONS) == ""
    assert key({"prompt": "x", "prompt_cache_key": "c-1"}, Operation.COMPLETIONS) != ""


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)


@given(st.dictionaries(st.sampled_from(["messages", "input", "prompt", "user"]), json_values))
def test_any_body_has_a_key(body: dict[str, Any]) -> None:
    assert len(key(body)) == 32
