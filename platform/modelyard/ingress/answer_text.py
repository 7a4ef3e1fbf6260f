"""What an answer says, from the bytes its caller got: for those who judge or compare answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from modelyard.bench.wire.sse import EventParser
from modelyard.contract.native import texts_of
from modelyard.contract.operations import Operation

_DONE: Final = "[DONE]"
_ENDINGS: Final = ("response.completed", "response.incomplete")
# What reading bytes of another shape raises.
WRONG_SHAPE: Final = (LookupError, TypeError, AttributeError, ValueError)


def text_of(operation: Operation, data: bytes, *, stream: bool) -> str:
    """What a reader sees of a generator's answer: texts, refusals and calls of tools.

    data: all bytes of the answer, of a stream all its events, with or without [DONE]. Choices come
    in the order of their index, a newline between two. Reasoning is left out: it is no answer.
    Raises ValueError for bytes of another shape.
    """
    try:
        return _STREAMED[operation](data) if stream else _WHOLE[operation](json.loads(data))
    except WRONG_SHAPE as error:
        raise ValueError(f"the bytes are no answer of {operation}") from error


def _plain(text: Any) -> str:
    if not isinstance(text, str):
        raise TypeError("no text")
    return text


def _choices(record: Mapping[str, Any], text: Callable[[Any], str]) -> str:
    choices = sorted(record["choices"], key=lambda choice: choice.get("index", 0))
    return "\n".join(text(choice) for choice in choices)


def _message(message: Mapping[str, Any]) -> str:
    parts = [message.get("content") or "", message.get("refusal") or ""]
    parts += [_call(call["function"]) for call in message.get("tool_calls") or ()]
    return "\n".join(filter(None, parts))


def _call(function: Mapping[str, Any]) -> str:
    return f"{function['name']}({function['arguments']})"


def _responses(response: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for item in response["output"]:
        if item["type"] == "message":
            parts += (part.get("text") or part.get("refusal") or "" for part in item["content"])
        elif item["type"] == "function_call":
            parts.append(_call(item))
    return "\n".join(filter(None, parts))


def _events(data: bytes) -> Iterator[dict[str, Any]]:
    # A blank line more ends an event whose bytes end with it.
    for event in EventParser().feed(data + b"\n\n"):
        if event.data != _DONE:
            yield json.loads(event.data)


class _Streamed:
    """One choice of a chat or a completion, put together from its chunks."""

    def __init__(self) -> None:
        self.text = self.refusal = ""
        self.calls: dict[int, dict[str, str]] = {}

    def take(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        self.text += choice.get("text") or delta.get("content") or ""
        self.refusal += delta.get("refusal") or ""
        for part in delta.get("tool_calls") or ():
            call = self.calls.setdefault(part["index"], {"name": "", "arguments": ""})
            for name in call:
                call[name] += part.get("function", {}).get(name) or ""

    def __str__(self) -> str:
        calls = (_call(self.calls[index]) for index in sorted(self.calls))
        return "\n".join(filter(None, (self.text, self.refusal, *calls)))


def _chunks(data: bytes) -> str:
    choices: dict[int, _Streamed] = {}
    seen = False
    for chunk in _events(data):
        seen = True
        for choice in chunk["choices"]:
            choices.setdefault(choice.get("index", 0), _Streamed()).take(choice)
    if not seen:
        raise ValueError("no event")
    return "\n".join(str(choices[index]) for index in sorted(choices))


def _typed_events(data: bytes) -> str:
    """The last event has the whole response again."""
    for event in _events(data):
        if event["type"] in _ENDINGS:
            return _responses(event["response"])
    raise ValueError("no event ends it")


def _native_events(data: bytes) -> str:
    if not data.startswith(b"event: "):
        raise ValueError("no event")
    return "".join(texts_of(data))


_WHOLE: Final[Mapping[Operation, Callable[[Any], str]]] = {
    Operation.GENERATE: lambda record: _plain(record["output"]),
    Operation.CHAT: lambda record: _choices(record, lambda choice: _message(choice["message"])),
    Operation.COMPLETIONS: lambda record: _choices(record, lambda choice: _plain(choice["text"])),
    Operation.RESPONSES: _responses,
}
_STREAMED: Final[Mapping[Operation, Callable[[bytes], str]]] = {
    Operation.GENERATE: _native_events,
    Operation.CHAT: _chunks,
    Operation.COMPLETIONS: _chunks,
    Operation.RESPONSES: _typed_events,
}
