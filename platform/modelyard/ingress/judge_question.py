"""What a judge is asked: a conversation, the answer to it, and the rubric. Never which version."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.contract.errors import ModelyardError
from modelyard.contract.operations import Operation
from modelyard.ingress.answer_text import WRONG_SHAPE, text_of

MAX_CHARACTERS: Final = 32 * 1024  # of a conversation, and of an answer
CUT: Final = "[...] "


class NoVerdict(ModelyardError):
    """The judge did not say what it thinks of an answer. Holds nothing of prompt or answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """messages: role and content of each, the last MAX_CHARACTERS of the conversation."""

    messages: tuple[dict[str, str], ...]
    answer: str
    rubric: str


def question_of(
    operation: Operation, body: bytes, answer: bytes, rubric: str, *, stream: bool
) -> Question:
    """From a generator's request as a shell gets it, and its answer's bytes.

    Raises NoVerdict where there is nothing that a judge could read: token ids, several prompts, an
    answer longer than MAX_CHARACTERS (cut, it would look incomplete).
    """
    try:
        text = text_of(operation, answer, stream=stream)
        messages = list(_messages(operation, json.loads(body)))
    except WRONG_SHAPE:
        # From None: the cause would carry what was asked into a log.
        raise NoVerdict("the request or its answer cannot be read as text") from None
    if len(text) > MAX_CHARACTERS:
        raise NoVerdict("the answer is too long to be judged")
    return Question(tuple(_last(messages)), text, rubric)


def _last(messages: list[dict[str, str]]) -> list[dict[str, str]]:
    """The end of a conversation: what an answer answers is there."""
    kept: list[dict[str, str]] = []
    left = MAX_CHARACTERS
    for message in reversed(messages):
        content = message["content"]
        if len(content) > left:
            kept.append(message | {"content": CUT + content[len(content) - left :]})
            break
        kept.append(message)
        left -= len(content)
    return kept[::-1]


def _messages(operation: Operation, body: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    if operation is Operation.COMPLETIONS:
        yield _said("user", _only_prompt(body["prompt"]))
        return
    if operation is Operation.RESPONSES:
        if instructions := body.get("instructions"):
            yield _said("system", instructions)
        items = body["input"]
        if isinstance(items, str):
            yield _said("user", items)
            return
    else:
        items = body["messages"]
    for item in items:
        yield _item(item)


def _item(item: Mapping[str, Any]) -> dict[str, str]:
    if item.get("type") == "function_call_output":
        return _said("tool", item["output"])
    if item.get("type") == "function_call":
        return _said("assistant", f"{item['name']}({item['arguments']})")
    calls = (call["function"] for call in item.get("tool_calls") or ())
    parts = [_text(item.get("content")), *(f"{c['name']}({c['arguments']})" for c in calls)]
    return _said(item["role"], "\n".join(filter(None, parts)))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part.get("text") or part["refusal"] for part in content)
    return content or ""


def _only_prompt(prompt: Any) -> str:
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise ValueError("no single text")
    return prompt


def _said(role: str, content: str) -> dict[str, str]:
    return {"role": str(role), "content": str(content)}
