"""Between our envelope and vLLM's serving layer: requests in, SSE chunks and errors out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from modelyard.contract.envelope import Envelope
from modelyard.contract.errors import Internal, InvalidRequest, Overloaded, RequestError
from modelyard.contract.native import GenerateRequest, delta_event
from modelyard.contract.operations import Operation

DONE: Final = "data: [DONE]\n\n"
DATA: Final = "data: "
ERROR_PREFIX: Final = 'data: {"error"'
_CONTEXT_PARAMETERS: Final = frozenset({"input_tokens", "input_text"})
_CONTEXT_TEXTS: Final = ("maximum context length", "exceeds the max_model_len")
# What a route calls the thing that is too long.
_INPUTS: Final = {Operation.COMPLETIONS: "prompt", Operation.RESPONSES: "input"}


def input_of(operation: str) -> str:
    """The field that holds the prompt."""
    return _INPUTS.get(Operation(operation), "messages")


# What pydantic calls the plain branches of a union.
_TYPES: Final = frozenset(("str", "int", "float", "bool", "none"))
# xgrammar's own: `[08:07:54] /project/cpp/regex_converter.cc:83: `.
_SOURCE_LINE: Final = re.compile(r"\[\d\d:\d\d:\d\d\] \S+:\d+: ")
_ABOUT_GRAMMAR: Final = re.compile(r"grammar|structural.tag|regex|schema", re.IGNORECASE)
# What constrains an answer, the first that an engine would read.
_CONSTRAINTS: Final = ("response_format", "text", "structured_outputs", "tools")


# Of an answer: the engine's own additions, which no caller of ours asked for.
ENGINE_FIELDS: Final[dict[str, Any]] = {
    **dict.fromkeys(
        (
            "prompt_logprobs",
            "prompt_token_ids",
            "prompt_text",
            "kv_transfer_params",
            "ec_transfer_params",
            "metrics",
        ),
        True,
    ),
    "choices": {"__all__": {"token_ids", "routed_experts", "prompt_token_ids", "prompt_logprobs"}},
}


def raw_request(envelope: Envelope) -> Any:
    """The starlette Request vLLM reads its id from: ours, never the caller's."""
    from starlette.requests import Request

    return Request(
        {
            "type": "http",
            "method": "POST",
            "path": "/",
            "query_string": b"",
            "headers": [(b"x-request-id", envelope.answer_id.encode())],
            "state": {},
        }
    )


def chat_request(envelope: Envelope, ours: dict[str, Any]) -> Any:
    """`ours` are the fields that are the platform's: they replace whatever the body says."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    return validated(ChatCompletionRequest, json.loads(envelope.body) | ours)


def completion_request(envelope: Envelope, ours: dict[str, Any]) -> Any:
    from vllm.entrypoints.openai.completion.protocol import CompletionRequest

    return validated(CompletionRequest, json.loads(envelope.body) | ours)


def native_request(envelope: Envelope, ours: dict[str, Any]) -> Any:
    """The native request as a chat request; its answer is always taken as a stream."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    native = GenerateRequest.model_validate_json(envelope.body)
    return validated(ChatCompletionRequest, native.as_chat() | ours | {"stream": True})


def validated(model: Any, record: dict[str, Any]) -> Any:
    from pydantic import ValidationError

    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        param = _place(first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InvalidRequest(f"{param or 'body'}: {message}", param=param or None) from error


def _place(loc: tuple[Any, ...]) -> str:
    """Where it is in the body, without the classes and validators that pydantic names between."""
    parts = [str(part) for part in loc if isinstance(part, int) or _is_name(part)]
    return ".".join(parts[:3])


def _is_name(part: str) -> bool:
    return part.isidentifier() and not part[0].isupper() and part not in _TYPES


def from_vllm(error: Exception, operation: str, body: bytes = b"{}") -> RequestError | None:
    """Our error for one that vLLM raised about a request; None when it is not about the request.

    `body` is the request's, to name the field of an error about a grammar.
    """
    from vllm.exceptions import GracefulHTTPError, VLLMClientError, VLLMValidationError

    match error:
        case VLLMValidationError():
            text = error.args[0] if error.args else str(error)
            return _invalid(str(text), error.parameter or _constraint(str(text), body), operation)
        case GracefulHTTPError():
            return _engine_busy()
        case VLLMClientError() | ValueError() | TypeError() | OverflowError():
            return _invalid(str(error), _constraint(str(error), body), operation)
    return None


def _constraint(message: str, body: bytes) -> str | None:
    """The field of the body that holds the grammar a message is about, or None."""
    if not _ABOUT_GRAMMAR.search(message):
        return None
    given = json.loads(body)
    return next((name for name in _CONSTRAINTS if given.get(name) is not None), None)


def from_error_object(error: dict[str, Any], operation: str) -> RequestError:
    """Our error for the `error` object of a vLLM ErrorResponse or of an SSE error chunk."""
    message, code = str(error.get("message", "")), error.get("code")
    if isinstance(code, int) and 400 <= code < 500:
        return _invalid(message, error.get("param"), operation)
    if code == 503:  # its queue is full, or it asks for a retry
        return _engine_busy()
    return Internal("the engine failed on this request")


def _engine_busy() -> Overloaded:
    return Overloaded("the engine's queue is full", reason="engine_full", retry_after_s=1)


def _invalid(message: str, param: str | None, operation: str) -> InvalidRequest:
    too_long = param in _CONTEXT_PARAMETERS or any(text in message for text in _CONTEXT_TEXTS)
    return InvalidRequest(
        _SOURCE_LINE.sub("", message).strip(),
        param=input_of(operation) if too_long else param,
        reason="context_length" if too_long else None,
        wire_code="context_length_exceeded" if too_long else None,
    )


def answer_json(response: Any, alias: str) -> bytes:
    """A whole chat or completion, with `model` as the caller wrote it."""
    response.model = alias
    encoded: str = response.model_dump_json(exclude=ENGINE_FIELDS)
    return encoded.encode()


def is_error_chunk(chunk: str) -> bool:
    return chunk.startswith(ERROR_PREFIX)


def error_of_chunk(chunk: str, operation: str) -> RequestError:
    """The error in `data: {"error": {...}}`, which vLLM sends mid-stream before a [DONE]."""
    return from_error_object(json.loads(chunk[len(DATA) :])["error"], operation)


def text_of_chunk(chunk: str) -> str:
    """The text that a chat chunk adds; empty for the role, finish and usage chunks."""
    if chunk == DONE:
        return ""
    choices = json.loads(chunk[len(DATA) :])["choices"]
    return (choices[0]["delta"].get("content") or "") if choices else ""


class NativeWriter:
    """Chat chunks as native `delta` events, numbered."""

    def __init__(self) -> None:
        self._index = 0

    def __call__(self, chunk: str) -> bytes:
        text = text_of_chunk(chunk)
        if not text:
            return b""
        self._index += 1
        return delta_event(self._index - 1, text)


def alias_writer(served_name: str, alias: str) -> Callable[[str], bytes]:
    """vLLM's chunk with `model` as the caller wrote it.

    Replaces the first occurrence only, which is the field itself: vLLM writes it before `choices`.
    Parsing and writing each chunk as JSON would cost ten times as much.
    """
    theirs, ours = f'"model":{json.dumps(served_name)}', f'"model":{json.dumps(alias)}'
    return lambda chunk: chunk.replace(theirs, ours, 1).encode()
