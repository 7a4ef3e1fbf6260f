"""An item of a golden set: a question, and what makes an answer to it good."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, Final, Self

from pydantic import Field, field_validator, model_validator

from modelyard.config.frozen import Frozen

_KEY_CHARS: Final = 16


class Expectation(Frozen):
    """What makes an answer good: one of the three. `contains`: all of these texts, as written.
    `equals`: nothing else, but for white space around it. `matches`: a regular expression,
    somewhere in the answer."""

    contains: tuple[str, ...] = ()
    equals: str | None = None
    matches: str | None = None

    @field_validator("contains", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("matches")
    @classmethod
    def _is_an_expression(cls, value: str | None) -> str | None:
        try:
            re.compile(value or "")
        except re.error as error:
            raise ValueError(f"no regular expression ({error}): correct it") from error
        return value

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = (bool(self.contains), self.equals is not None, self.matches is not None)
        if sum(given) != 1:
            raise ValueError("give one of contains, equals and matches")
        return self

    def holds(self, text: str) -> bool:
        if self.equals is not None:
            return text.strip() == self.equals.strip()
        if self.matches is not None:
            return re.search(self.matches, text) is not None
        return all(part in text for part in self.contains)

    def __str__(self) -> str:
        if self.equals is not None:
            return f"equals {self.equals!r}"
        if self.matches is not None:
            return f"matches {self.matches!r}"
        return f"contains {', '.join(map(repr, self.contains))}"


class GoldenItem(Frozen):
    """One line: `messages` of a chat, the `prompt` of a completion, or the `input` that a
    classifier labels."""

    messages: tuple[dict[str, Any], ...] = ()
    prompt: str | None = None
    input: str | None = None
    expect: Expectation
    max_tokens: int | None = Field(default=None, ge=1)

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        given = (bool(self.messages), self.prompt is not None, self.input is not None)
        if sum(given) != 1:
            raise ValueError("give one of messages, prompt and input")
        return self

    @property
    def key(self) -> str:
        """The same for the same line: what is judged twice counts once."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:_KEY_CHARS]

    @property
    def question(self) -> str:
        """What a human reads: the last message."""
        if self.messages:
            return str(self.messages[-1].get("content", ""))
        return self.prompt or self.input or ""

    def call(self, version: str) -> tuple[str, dict[str, Any]]:
        """Path and body of the request to a version; greedy, so that a second run says the same."""
        if self.input is not None:
            return "/v1/classify", {"model": version, "input": self.input}
        body: dict[str, Any] = {"model": version, "temperature": 0}
        if self.max_tokens is not None:
            body["max_tokens"] = self.max_tokens
        if self.messages:
            return "/v1/chat/completions", body | {"messages": list(self.messages)}
        return "/v1/completions", body | {"prompt": self.prompt}

    def text_of(self, answer: Any) -> str:
        """The text, or the label, of an answer to `call`. Raises LookupError or TypeError for what
        is none."""
        if self.input is not None:
            return str(answer["data"][0]["label"])
        [choice, *_] = answer["choices"]
        return str((choice["message"]["content"] if self.messages else choice["text"]) or "")
