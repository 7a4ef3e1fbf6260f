from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.operations import Operation
from modelyard.routing.affinity import LEAST_CHARACTERS, PREFIX_CHARACTERS, affinity_key

RULES = "Never promise a refund. " * 40


def key(
    body: dict[str, Any],
    operation: Operation = Operation.CHAT,
    *,
    version: str = "gen@1",
    tenant: str = "acme",
    conversation: str = "c-1",
) -> str:
    return affinity_key(operation, body, version, tenant, conversation)


def chat(system: Any, user: str = "hello") -> dict[str, Any]:
    return {"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}


def test_conversations_that_share_a_system_prompt_share_a_key() -> None:
    assert key(chat(RULES, "one"), conversation="a") == key(chat(RULES, "two"), conversation="b")
    assert key(chat(RULES)) != key(chat("Always " + RULES))


def test_what_is_appended_to_a_long_system_prompt_changes_nothing() -> None:
    assert key(chat(RULES * 2 + "Today is Monday.")) == key(chat(RULES * 2 + "Today is Tuesday."))
    assert len(RULES * 2) > PREFIX_CHARACTERS


@pytest.mark.parametrize("system", ["", "Be kind.", "x" * (LEAST_CHARACTERS - 2)])
def test_without_a_long_system_prompt_the_conversation_decides(system: str) -> None:
    assert key(chat(system, "one")) == key(chat(system, "another turn"))
    assert key(chat(system), conversation="a") != key(chat(system), conversation="b")


def test_the_version_and_the_tenant_are_in_it() -> None:
    keys = {
        key(chat(RULES), version=version, tenant=tenant)
        for version in ("gen@1", "gen@2")
        for tenant in ("acme", "globex")
    }
    assert len(keys) == 4


def test_every_way_to_say_a_system_prompt_counts() -> None:
    developer = {"messages": [{"role": "developer", "content": RULES}]}
    parts = {"messages": [{"role": "system", "content": [{"type": "text", "text": RULES}]}]}
    assert key(developer, conversation="a") == key(developer, conversation="b")
    assert key(parts) == key(chat(RULES))
    assert key(
        {"instructions": RULES, "input": "hi"}, Operation.RESPONSES, conversation="a"
    ) == key(
        {"instructions": RULES, "input": [{"role": "user", "content": "ho"}]},
        Operation.RESPONSES,
        conversation="b",
    )


def test_a_completion_is_keyed_by_the_beginning_of_its_prompt() -> None:
    long = RULES * 2
    assert key({"prompt": long + "a"}, Operation.COMPLETIONS) == key(
        {"prompt": [long + "b", "c"]}, Operation.COMPLETIONS
    )
    ids = list(range(3000))
    assert key({"prompt": ids}, Operation.COMPLETIONS, conversation="") == key(
        {"prompt": [[*ids, 7]]}, Operation.COMPLETIONS, conversation=""
    )
    assert key({"prompt": "short"}, Operation.COMPLETIONS, conversation="") == ""
    assert key({"prompt": "short"}, Operation.COMPLETIONS, conversation="c") != ""


@pytest.mark.parametrize(
    "operation", [Operation.EMBED, Operation.CLASSIFY, Operation.RERANK, Operation.SCORE]
)
def test_small_models_have_no_key(operation: Operation) -> None:
    assert key({"input": RULES}, operation) == ""


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "text", "messages", "prompt"])
            | st.text(max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("messages", "input", "prompt", "instructions"), JSON)
    ),
    st.sampled_from(Operation),
)
def test_no_body_is_too_odd(body: dict[str, Any], operation: Operation) -> None:
    assert isinstance(key(body, operation), str)
