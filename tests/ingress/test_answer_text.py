"""The text of an answer, in the shapes that the shells send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.contract.envelope import Usage
from modelyard.contract.native import answer, delta_event, done_event
from modelyard.contract.operations import Operation
from modelyard.ingress.answer_text import text_of

GENERATORS = [Operation.GENERATE, Operation.CHAT, Operation.COMPLETIONS, Operation.RESPONSES]
CALL = {"name": "order", "arguments": '{"id": 7}'}


def sse(*records: Any, done: bool = False) -> bytes:
    events = "".join(f"data: {json.dumps(record)}\n\n" for record in records)
    return (events + ("data: [DONE]\n\n" if done else "")).encode()


def typed(*records: dict[str, Any]) -> bytes:
    return "".join(f"event: {r['type']}\ndata: {json.dumps(r)}\n\n" for r in records).encode()


def chunk(index: int = 0, **delta: Any) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [choice]}


def message(**parts: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": None} | parts}]}


def response(*output: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": status, "output": list(output)}


def said(text: str) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"type": "message", "role": "assistant", "content": [part]}


def whole(operation: Operation, record: Any) -> str:
    return text_of(operation, json.dumps(record).encode(), stream=False)


def test_native_answers() -> None:
    usage = Usage(3, 2)
    unary = answer("a-1", "gen@1.0.0", "héllo", usage)
    assert text_of(Operation.GENERATE, unary, stream=False) == "héllo"
    events = delta_event(0, "hé") + delta_event(1, "llo\n\n!") + done_event("gen@1.0.0", usage)
    assert text_of(Operation.GENERATE, events, stream=True) == "héllo\n\n!"


def test_a_chat_has_its_message_and_not_its_reasoning() -> None:
    assert whole(Operation.CHAT, message(content="hi", reasoning_content="hm")) == "hi"
    assert whole(Operation.CHAT, message(refusal="no")) == "no"
    assert whole(Operation.CHAT, message(content=None)) == ""


def test_calls_of_tools_are_part_of_a_chat() -> None:
    calls = [{"id": "c-1", "type": "function", "function": CALL}]
    assert whole(Operation.CHAT, message(tool_calls=calls)) == 'order({"id": 7})'


def test_choices_come_in_the_order_of_their_index() -> None:
    record = {"choices": [{"index": 1, "text": "b"}, {"index": 0, "text": "a"}]}
    assert whole(Operation.COMPLETIONS, record) == "a\nb"
    chunks = (chunk(1, content="b"), chunk(0, content="a"), chunk(1, content="B"))
    assert text_of(Operation.CHAT, sse(*chunks), stream=True) == "a\nbB"


@pytest.mark.parametrize("done", [True, False])
def test_a_chat_is_put_together_from_its_chunks(done: bool) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
    chunks = (chunk(role="assistant", content=""), chunk(content="a"), chunk(content="b"), usage)
    assert text_of(Operation.CHAT, sse(*chunks, done=done), stream=True) == "ab"


def test_a_streamed_call_is_put_together() -> None:
    begin = {"index": 0, "id": "c-1", "type": "function"}
    parts = [
        begin | {"function": {"name": "order", "arguments": ""}},
        {"index": 0, "function": {"arguments": '{"id"'}},
        {"index": 0, "function": {"arguments": ": 7}"}},
    ]
    chunks = [chunk(tool_calls=[part]) for part in parts]
    assert text_of(Operation.CHAT, sse(*chunks), stream=True) == 'order({"id": 7})'


def test_completions_stream_their_text() -> None:
    chunks = [{"choices": [{"index": 0, "text": text}]} for text in ("a", "", "b")]
    assert text_of(Operation.COMPLETIONS, sse(*chunks, done=True), stream=True) == "ab"


def test_a_response_has_the_texts_and_calls_of_its_output() -> None:
    reasoning = {"type": "reasoning", "summary": []}
    record = response(reasoning, said("hi"), {"type": "function_call", "call_id": "c", **CALL})
    assert whole(Operation.RESPONSES, record) == 'hi\norder({"id": 7})'


@pytest.mark.parametrize("ending", ["response.completed", "response.incomplete"])
def test_a_streamed_response_is_read_from_its_last_event(ending: str) -> None:
    events = typed(
        {"type": "response.created", "response": response(status="in_progress")},
        {"type": "response.output_text.delta", "delta": "h"},
        {"type": ending, "response": response(said("hi"))},
    )
    assert text_of(Operation.RESPONSES, events, stream=True) == "hi"


@pytest.mark.parametrize("operation", GENERATORS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'data: {"choices": [7]}\n\n',
        b"data: {\n\n",
        b'{"choices": [{"message": "x"}]}',
        b'{"choices": [{"text": null}], "output": [{}]}',
        b"event: delta\ndata: [\n\n",
    ],
)
def test_bytes_of_another_shape_are_no_answer(
    operation: Operation, stream: bool, data: bytes
) -> None:
    with pytest.raises(ValueError, match="no answer"):
        text_of(operation, data, stream=stream)


@given(st.binary(max_size=60), st.sampled_from(GENERATORS), st.booleans())
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_a_text_or_no_answer(data: bytes, operation: Operation, stream: bool) -> None:
    try:
        text = text_of(operation, data, stream=stream)
    except ValueError:
        return
    assert isinstance(text, str)
