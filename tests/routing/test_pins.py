import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.config.routes import Route
from modelyard.contract.operations import Operation
from modelyard.routing.pins import (
    MAX_CHARACTERS,
    Holder,
    Pin,
    goes_on,
    pins_conversations,
    read_pin,
    turn_of,
    write_pin,
)

SECRET = b"s" * 32
PIN = Pin("gen@2.0.0", "r-1")
HOLDER = Holder("alpha", "chat", "c" * 32)
WRITTEN = write_pin(PIN, HOLDER, SECRET)
NAMES = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=40)


@given(version=NAMES, rollout=NAMES, tenant=NAMES, secret=st.binary(min_size=32, max_size=40))
def test_what_was_written_is_read_back(
    version: str, rollout: str, tenant: str, secret: bytes
) -> None:
    holder = Holder(tenant, "chat", "c-1")
    text = write_pin(Pin(version, rollout), holder, secret)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", text)
    assert read_pin(text, holder, secret) == Pin(version, rollout)


@pytest.mark.parametrize(
    "other",
    [
        Holder("beta", "chat", "c" * 32),
        Holder("alpha", "other", "c" * 32),
        Holder("alpha", "chat", "d" * 32),
    ],
)
def test_for_any_other_holder_it_is_forged(other: Holder) -> None:
    assert read_pin(WRITTEN, HOLDER, SECRET) == PIN
    assert read_pin(WRITTEN, other, SECRET) is None
    assert read_pin(WRITTEN, HOLDER, b"t" * 32) is None


@given(st.text() | st.from_regex(r"[\w+/=-]{0,90}") | st.just("A" * (MAX_CHARACTERS + 1)))
def test_any_other_text_is_none(text: str) -> None:
    assert read_pin(text, HOLDER, SECRET) is None
    assert turn_of(text, HOLDER, SECRET, goes_on=True).refused == "invalid"


@given(at=st.integers(0, len(WRITTEN) - 1), character=st.sampled_from("AZaz09-_"))
def test_a_changed_character_opens_nothing(at: int, character: str) -> None:
    changed = WRITTEN[:at] + character + WRITTEN[at + 1 :]
    # The last character may hold bits that base64 does not read.
    assert read_pin(changed, HOLDER, SECRET) in (None, PIN)
    assert read_pin(changed, HOLDER, SECRET) is None or changed[:-1] == WRITTEN[:-1]


def test_a_turn_without_a_header_refuses_nothing() -> None:
    turn = turn_of(None, HOLDER, SECRET, goes_on=True)
    assert (turn.pin, turn.refused, turn.goes_on) == (None, "", True)
    assert turn_of(WRITTEN, HOLDER, SECRET, goes_on=False).pin == PIN


USER: dict[str, Any] = {"role": "user", "content": "hi"}
ASSISTANT: dict[str, Any] = {"role": "assistant", "content": "hello"}


@pytest.mark.parametrize(
    ("operation", "body", "is_later"),
    [
        (Operation.CHAT, {"messages": [USER]}, False),
        (Operation.CHAT, {"messages": [{"role": "system", "content": "s"}, USER]}, False),
        (Operation.CHAT, {"messages": [USER, ASSISTANT, USER]}, True),
        (Operation.CHAT, {"messages": [USER, {"role": "tool", "content": "3"}]}, True),
        (Operation.CHAT, {"messages": "hi"}, False),
        (Operation.CHAT, {"messages": ["hi", 3, None]}, False),
        (Operation.GENERATE, {"messages": [USER, ASSISTANT]}, True),
        (Operation.RESPONSES, {"input": "hi"}, False),
        (Operation.RESPONSES, {"input": [USER, ASSISTANT]}, True),
        (Operation.RESPONSES, {"input": [USER, {"type": "function_call_output"}]}, True),
        (Operation.COMPLETIONS, {"prompt": "hi", "messages": [ASSISTANT]}, False),
        (Operation.EMBED, {"input": [ASSISTANT]}, False),
    ],
)
def test_an_answer_in_a_request_says_that_it_goes_on(
    operation: Operation, body: dict[str, Any], is_later: bool
) -> None:
    assert goes_on(operation, body) is is_later


def test_only_a_plan_that_says_so_pins() -> None:
    plan = {"id": "r-1", "conversations": "pin"}
    assert pins_conversations(
        Route.model_validate({"stable": "a@1", "canary": "a@2", "rollout": plan})
    )
    plan = {"id": "r-1"}
    assert not pins_conversations(
        Route.model_validate({"stable": "a@1", "canary": "a@2", "rollout": plan})
    )
    assert not pins_conversations(Route(stable="a@1"))
    assert not pins_conversations(None)
