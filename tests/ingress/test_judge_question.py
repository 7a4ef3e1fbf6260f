"""What a judge reads of a request and its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modelyard.contract.envelope import Usage
from modelyard.contract.native import answer
from modelyard.contract.operations import Operation
from modelyard.ingress.judge_question import (
    CUT,
    MAX_CHARACTERS,
    NoVerdict,
    Question,
    question_of,
)

USER = {"role": "user", "content": "a question"}


def chat(text: str) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": {"content": text}}]}).encode()


def asked(body: dict[str, Any], operation: Operation = Operation.CHAT) -> Question:
    answers = {
        Operation.CHAT: chat("an answer"),
        Operation.GENERATE: answer("a", "gen@1.0.0", "an answer", Usage(1, 1)),
        Operation.COMPLETIONS: b'{"choices": [{"index": 0, "text": "an answer"}]}',
        Operation.RESPONSES: json.dumps(
            {"output": [{"type": "message", "content": [{"text": "an answer"}]}]}
        ).encode(),
    }
    encoded = json.dumps(body).encode()
    return question_of(operation, encoded, answers[operation], "be polite", stream=False)


@pytest.mark.parametrize("operation", [Operation.CHAT, Operation.GENERATE])
def test_messages_are_read_as_they_are(operation: Operation) -> None:
    system = {"role": "system", "content": "be brief"}
    question = asked({"messages": [system, USER], "temperature": 0}, operation)
    assert question == Question((system, USER), "an answer", "be polite")


def test_calls_and_results_of_tools_are_read() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "order", "arguments": "{}"}}
    messages = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "shipped"},
    ]
    assert [one["content"] for one in asked({"messages": messages}).messages] == [
        "a question",
        "order({})",
        "shipped",
    ]


def test_parts_of_a_message_are_joined() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "b"}]
    (message,) = asked({"messages": [{"role": "user", "content": parts}]}).messages
    assert message["content"] == "a\nb"


@pytest.mark.parametrize("prompt", ["a question", ["a question"]])
def test_a_completion_is_a_question_of_the_user(prompt: Any) -> None:
    assert asked({"prompt": prompt}, Operation.COMPLETIONS).messages == (USER,)


@pytest.mark.parametrize("prompt", [[1, 2], ["a", "b"], [[1]]])
def test_token_ids_and_several_prompts_are_nothing_to_judge(prompt: Any) -> None:
    with pytest.raises(NoVerdict):
        asked({"prompt": prompt}, Operation.COMPLETIONS)


def test_the_input_of_a_response_is_text_or_items() -> None:
    assert asked({"input": "a question"}, Operation.RESPONSES).messages == (USER,)
    items = [
        {"type": "message"} | USER,
        {"type": "function_call", "call_id": "c", "name": "order", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "shipped"},
    ]
    question = asked({"input": items, "instructions": "be brief"}, Operation.RESPONSES)
    assert [(one["role"], one["content"]) for one in question.messages] == [
        ("system", "be brief"),
        ("user", "a question"),
        ("assistant", "order({})"),
        ("tool", "shipped"),
    ]


def test_of_a_long_conversation_the_end_is_read() -> None:
    long = {"role": "user", "content": "x" * MAX_CHARACTERS + "the end"}
    first, last = asked({"messages": [USER, long, USER]}).messages
    assert last == USER
    assert first["content"].startswith(CUT)
    assert first["content"].endswith("the end")
    assert len(first["content"]) == MAX_CHARACTERS - len("a question") + len(CUT)


def test_a_long_answer_is_not_judged_by_its_beginning() -> None:
    body = json.dumps({"messages": [USER]}).encode()
    exact, longer = "x" * MAX_CHARACTERS, "x" * (MAX_CHARACTERS + 1)
    assert question_of(Operation.CHAT, body, chat(exact), "r", stream=False).answer == exact
    with pytest.raises(NoVerdict, match="too long"):
        question_of(Operation.CHAT, body, chat(longer), "r", stream=False)


def test_what_cannot_be_read_is_refused_without_a_word_of_it() -> None:
    with pytest.raises(NoVerdict) as caught:
        question_of(Operation.CHAT, b"{}", b"a secret", "r", stream=False)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
