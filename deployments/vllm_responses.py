"""/v1/responses over vLLM's serving layer: requests in, whole answers and typed events out."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from deployments.vllm_requests import validated
from modelyard.contract.answer_id import RESPONSES_PREFIX
from modelyard.contract.envelope import Envelope

# Of an answer: the engine's own additions, which no caller of ours asked for.
ENGINE_FIELDS: Final[dict[str, Any]] = dict.fromkeys(
    ("input_messages", "output_messages", "kv_transfer_params", "ec_transfer_params", "metrics"),
    True,
) | {
    "usage": {
        "input_tokens_details": {"input_tokens_per_turn", "cached_tokens_per_turn"},
        "output_tokens_details": {
            "tool_output_tokens",
            "output_tokens_per_turn",
            "tool_output_tokens_per_turn",
        },
    }
}
_BEGINNINGS: Final = ("response.created", "response.in_progress")


def responses_request(envelope: Envelope, ours: dict[str, Any]) -> Any:
    """The request under our id, which vLLM takes from the body here; it must store nothing."""
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    own = {"request_id": RESPONSES_PREFIX + envelope.answer_id, "store": False}
    return validated(ResponsesRequest, json.loads(envelope.body) | ours | own)


def answer_json(response: Any, alias: str) -> bytes:
    """A whole answer, with `model` as the caller wrote it."""
    response.model = alias
    encoded: str = response.model_dump_json(by_alias=True, exclude=ENGINE_FIELDS)
    return encoded.encode()


async def sse_texts(events: AsyncGenerator[Any], alias: str) -> AsyncGenerator[str]:
    """vLLM's typed events as its own server writes them: an event name, then the JSON.

    The events that only say that the work began wait for the first that the model makes: until
    then a failure still has an HTTP status, and the request may go to another replica.
    """
    begun = ""
    async with aclosing(events):
        async for event in events:
            if (response := getattr(event, "response", None)) is not None:
                response.model = alias
            data = event.model_dump_json(by_alias=True, exclude={"response": ENGINE_FIELDS})
            text = f"event: {event.type}\ndata: {data}\n\n"
            if event.type in _BEGINNINGS:
                begun += text
            else:
                yield begun + text
                begun = ""
