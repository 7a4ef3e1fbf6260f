"""The native contract: POST /v1/generate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from modelyard.contract.envelope import Usage
from modelyard.contract.messages import MAX_MESSAGES
from modelyard.contract.sampling import MAX_STOPS


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


_Stop = Annotated[str, Field(min_length=1)]


class Message(_Strict):
    role: Literal["system", "user", "assistant", "tool"]
    content: str


def _bounded(messages: Any) -> Any:
    """Before pydantic, which makes an error of each message and of each unknown key."""
    if not isinstance(messages, list):
        return messages
    if len(messages) > MAX_MESSAGES:
        raise ValueError(f"holds {len(messages)} messages, at most {MAX_MESSAGES}: send fewer")
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not message.keys() <= Message.model_fields.keys():
            raise ValueError(f"item {index} must be an object of role and content, nothing else")
    return messages


class GenerateRequest(_Strict):
    """`max_output_tokens` is required: it bounds cost, drain time and the quota reservation."""

    model: str = Field(min_length=1, max_length=128)
    conversation_id: str = Field(min_length=1, max_length=256)
    messages: Annotated[list[Message], Field(min_length=1), BeforeValidator(_bounded)]
    max_output_tokens: int = Field(ge=1)
    stream: bool = False
    deadline_ms: int | None = Field(default=None, ge=1, le=10**9)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=-1)
    min_p: float | None = Field(default=None, ge=0, le=1)
    presence_penalty: float | None = Field(default=None, ge=-2, le=2)
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2)
    repetition_penalty: float | None = Field(default=None, gt=0)
    stop: Annotated[list[_Stop], Field(max_length=MAX_STOPS)] | None = None
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)

    def as_chat(self) -> dict[str, Any]:
        """The same request in OpenAI's chat fields."""
        record = self.model_dump(exclude_none=True)
        for name in ("conversation_id", "deadline_ms", "model", "stream"):
            record.pop(name, None)
        record["max_completion_tokens"] = record.pop("max_output_tokens")
        return record


def delta_event(index: int, text: str) -> bytes:
    return _event("delta", {"index": index, "text": text})


def done_event(model_version: str, usage: Usage) -> bytes:
    return _event(
        "done",
        {
            "finish_reason": usage.finish_reason,
            "model_version": model_version,
            "usage": usage_record(usage),
        },
    )


def texts_of(data: bytes) -> Iterator[str]:
    """The texts of the delta events in a piece of a stream, as a shell cuts it: at event ends."""
    for event in data.split(b"\n\n"):
        name, _, payload = event.partition(b"\n")
        if name == b"event: delta":
            yield json.loads(payload.removeprefix(b"data: "))["text"]


def answer(answer_id: str, model_version: str, text: str, usage: Usage) -> bytes:
    """The unary GenerateResponse."""
    record = {
        "id": answer_id,
        "model_version": model_version,
        "output": text,
        "finish_reason": usage.finish_reason,
        "usage": usage_record(usage),
    }
    return json.dumps(record, ensure_ascii=False).encode()


def usage_record(usage: Usage) -> dict[str, int]:
    return {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
