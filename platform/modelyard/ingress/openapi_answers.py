"""What the OpenAPI description says of answers: their statuses, media types, headers and bodies."""

from __future__ import annotations

from typing import Any, Final

from modelyard.contract.operations import Operation
from modelyard.ingress.work import SMALL

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_FLAG: Final = {"type": "boolean"}
_NULLABLE: Final = {"type": ["string", "null"]}
_NATIVE: Final = {
    "type": "object",
    "required": ["code", "message", "retryable", "request_id"],
    "properties": {
        "code": _TEXT,
        "message": _TEXT,
        "retryable": _FLAG,
        "request_id": _TEXT,
        "retry_after_s": {"type": "number"},
    },
    "additionalProperties": False,
}
_ERROR_MEMBERS: Final = (
    *("message", "type", "param", "code"),
    *("modelyard_code", "reason", "retryable", "request_id"),
)
_OPENAI: Final = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": list(_ERROR_MEMBERS),
            "properties": {
                "message": _TEXT,
                "type": _TEXT,
                "param": _NULLABLE,
                "code": _NULLABLE,
                "modelyard_code": _TEXT,
                "reason": _TEXT,
                "retryable": _FLAG,
                "request_id": _TEXT,
            },
        },
        "detail": {"type": "string", "description": "rerank only: the message again"},
    },
}
SCHEMAS: Final[dict[str, dict[str, Any]]] = {"NativeError": _NATIVE, "Error": _OPENAI}


def _list_of(items: str, **members: Any) -> dict[str, Any]:
    return _object(**{items: {"type": "array", "items": _object(**members)}})


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "required": sorted(members), "properties": members}


# The members a caller may count on; the engine adds others.
_ANSWERS: Final[dict[Operation, dict[str, Any]]] = {
    Operation.GENERATE: _object(
        id=_TEXT,
        model_version=_TEXT,
        output=_TEXT,
        finish_reason=_TEXT,
        usage=_object(input_tokens=_COUNT, output_tokens=_COUNT),
    ),
    Operation.CHAT: _list_of("choices", index=_COUNT, message={"type": "object"}),
    Operation.COMPLETIONS: _list_of("choices", index=_COUNT, text=_TEXT),
    Operation.RESPONSES: _object(id=_TEXT, status=_TEXT, output={"type": "array"}),
    Operation.EMBED: _list_of("data", index=_COUNT, embedding={"type": ["array", "string"]}),
    Operation.CLASSIFY: _list_of("data", index=_COUNT, label=_TEXT, probs={"type": "array"}),
    Operation.RERANK: _list_of("results", index=_COUNT, relevance_score={"type": "number"}),
    Operation.SCORE: _list_of("data", index=_COUNT, score={"type": "number"}),
}
_ID: Final = {"X-Request-Id": {"schema": _TEXT, "required": True}}
_ANSWERED: Final = _ID | {
    name: {"schema": _TEXT, "required": True} for name in ("X-Model-Version", "X-Rollout-Arm")
}
_DEGRADED: Final = {
    "X-Degraded": {"schema": _TEXT, "description": "What overload made smaller: a cap, a fallback."}
}
_RETRY: Final = {"x-should-retry": {"schema": {"enum": ["true", "false"]}, "required": True}}
_MEANINGS: Final = {
    400: "The request is wrong: `message` says what, `param` where.",
    401: "No key, or an unknown one.",
    403: "The key lacks the role, or its tenant this model.",
    404: "No such model, or not one of yours.",
    413: "The body is larger than `max_body_bytes`.",
    415: "Not JSON, or compressed.",
    429: "A limit of the tenant is used up.",
    500: "A bug of ours, logged under the request id.",
    502: "The replica died under the request.",
    503: "The model is not loaded, or its queue is full.",
    504: "A deadline passed.",
}


# Of POST /v1/feedback.
COUNTED: Final = {
    "200": {
        "description": "Taken: whether it counts, and if not, why.",
        "headers": _ID,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["counted"],
                    "properties": {"counted": _FLAG, "why": _TEXT},
                    "additionalProperties": False,
                }
            }
        },
    }
}


def answers(operation: Operation) -> dict[str, Any]:
    """The `responses` of a model route."""
    content: dict[str, Any] = {"application/json": {"schema": _ANSWERS[operation]}}
    if operation not in SMALL:
        content["text/event-stream"] = {}  # readers differ on whether a schema is of one event
    answered = {"description": "The answer", "headers": _ANSWERED | _DEGRADED, "content": content}
    return {"200": answered} | errors(tuple(_MEANINGS), native=operation is Operation.GENERATE)


def errors(statuses: tuple[int, ...], *, native: bool = False) -> dict[str, Any]:
    """The `responses` of what is refused or fails."""
    schema = {"$ref": f"#/components/schemas/{'NativeError' if native else 'Error'}"}
    return {
        str(status): {
            "description": _MEANINGS[status],
            "headers": _ID | _RETRY,
            "content": {"application/json": {"schema": schema}},
        }
        for status in statuses
    }
