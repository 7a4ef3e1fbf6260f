"""OpenAI's generating routes, as every server of this kind speaks them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, Final

from modelyard.bench.wire.native import messages
from modelyard.bench.wire.reading import Reading
from modelyard.bench.wire.sse import Event
from modelyard.bench.wire.texts import Texts
from modelyard.workload.plan import Planned

DONE: Final = "[DONE]"
_CONTENT: Final = ("content", "reasoning_content", "reasoning", "refusal", "tool_calls")
_ENDINGS: Final = ("response.completed", "response.incomplete")  # the latter: at its token cap


class _Choices(ABC):
    """Streams of choices that end with [DONE]."""

    def event(self, event: Event, reading: Reading) -> bool:
        if event.data == DONE:
            # vLLM and others send [DONE] after an error too: that is no success.
            reading.ended = reading.error is None
            return False
        record = json.loads(event.data)
        if not isinstance(record, dict):
            return False
        if record.get("error") is not None or event.name == "error":
            reading.fail(record)
            return False
        reading.usage(record.get("usage"))
        return any(self.content(choice) for choice in record.get("choices") or ())

    @abstractmethod
    def content(self, choice: dict[str, Any]) -> bool:
        """Whether a chunk's choice holds something that its caller sees."""


class Chat(_Choices):
    path = "/v1/chat/completions"

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]:
        return {"messages": messages(planned, texts), **_caps(planned)}

    def content(self, choice: dict[str, Any]) -> bool:
        delta = choice.get("delta") or {}
        return any(delta.get(name) for name in _CONTENT)


class Completions(_Choices):
    path = "/v1/completions"

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]:
        prompt = " ".join(one["content"] for one in messages(planned, texts))
        return {"prompt": prompt, **_caps(planned)}

    def content(self, choice: dict[str, Any]) -> bool:
        return bool(choice.get("text"))


class Responses:
    path = "/v1/responses"

    def body(self, planned: Planned, texts: Texts) -> dict[str, Any]:
        return {
            "input": messages(planned, texts),
            "max_output_tokens": planned.output_tokens,
            "stream": planned.stream.stream,
            "store": False,
        }

    def event(self, event: Event, reading: Reading) -> bool:
        if event.data == DONE:  # some servers add it
            return False
        record = json.loads(event.data)
        kind = record.get("type") or event.name
        if kind in _ENDINGS:
            reading.usage((record.get("response") or {}).get("usage"))
            reading.ended = True
        elif kind == "response.failed":
            reading.fail((record.get("response") or {}).get("error"))
        elif kind == "error" or record.get("error") is not None:
            reading.fail(record)
        return kind.endswith(".delta") and bool(record.get("delta"))


def _caps(planned: Planned) -> dict[str, Any]:
    """max_tokens, because every peer knows it; extra_body can give max_completion_tokens."""
    caps: dict[str, Any] = {"max_tokens": planned.output_tokens}
    if planned.stream.stream:
        caps |= {"stream": True, "stream_options": {"include_usage": True}}
    return caps
