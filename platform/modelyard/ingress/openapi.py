"""The OpenAPI description of request bodies. They are parsed by us, so FastAPI cannot see them."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI

from modelyard.contract.headers import (
    CONVERSATION_PIN,
    DEADLINE_MS,
    REQUEST_ID,
    TRAFFIC_LABEL,
)
from modelyard.contract.native import GenerateRequest
from modelyard.contract.operations import Operation
from modelyard.ingress.feedback import Feedback
from modelyard.ingress.openapi_answers import COUNTED, SCHEMAS, answers, errors
from modelyard.ingress.openapi_fields import openai_schema
from modelyard.ingress.work import LEAST_DEADLINE, SMALL

FEEDBACK_WORDS: Final = ("score", "thumbs", "label")
_SECURITY: Final[list[dict[str, list[str]]]] = [{"bearer": []}]
# A request id that is not well-formed is replaced and refuses nothing, so it has no pattern.
_HEADERS: Final[list[dict[str, Any]]] = [
    {"name": REQUEST_ID, "in": "header", "schema": {"type": "string"}},
    {
        "name": DEADLINE_MS,
        "in": "header",
        "schema": {"type": "number", "minimum": LEAST_DEADLINE, "exclusiveMaximum": 1e9},
    },
    *(
        {"name": name, "in": "header", "schema": {"type": "string"}}
        for name in (CONVERSATION_PIN, TRAFFIC_LABEL)
    ),
]


def document(app: FastAPI) -> dict[str, Any]:
    """The whole description, with what the routes' own records refer to."""
    record = app.openapi()
    components = record.setdefault("components", {})
    components["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    components["schemas"] = components.get("schemas", {}) | SCHEMAS
    for path, operations in record["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)  # FastAPI's own; ours is a 400
            if path.startswith("/v1/models"):
                operation["security"] = _SECURITY
                operation["responses"] |= errors((401, 403, 404, 500, 503))
            elif path.startswith(("/admin", "/metrics")):
                operation["security"] = _SECURITY
                operation["responses"] |= errors((400, 401, 403, 404, 413, 415, 500, 503))
            elif path.startswith("/health"):
                operation["responses"] |= errors((404, 500, 503))
    return record


def request_body(operation: Operation) -> dict[str, Any]:
    """`openapi_extra` for a route: its body, headers and answers, and the bearer key."""
    return {
        "parameters": _HEADERS,
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _schema(operation)}},
        },
        "responses": answers(operation),
        "security": _SECURITY,
    }


def feedback_body() -> dict[str, Any]:
    """`openapi_extra` of POST /v1/feedback."""
    schema = Feedback.model_json_schema()
    # What pydantic cannot say: one of the three, and a null is none of them.
    for name in FEEDBACK_WORDS:
        schema["properties"][name] = schema["properties"][name]["anyOf"][0]
    schema["oneOf"] = [{"required": [name]} for name in FEEDBACK_WORDS]
    return {
        "parameters": _HEADERS[:1],
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": COUNTED | errors((400, 401, 403, 404, 413, 415, 500, 503, 504)),
        "security": _SECURITY,
    }


def _schema(operation: Operation) -> dict[str, Any]:
    if operation is Operation.GENERATE:
        return _nulls_allowed(_with_model(GenerateRequest.model_json_schema()))
    if operation in SMALL:
        return _nulls_allowed(_with_model(SMALL[operation].model_json_schema()))
    return _nulls_allowed(openai_schema(operation))


def _nulls_allowed(schema: dict[str, Any]) -> dict[str, Any]:
    """Null equals absent, so it is fine wherever absent is."""
    null = {"type": "null"}
    properties = {
        name: one
        if name in schema["required"] or not one or null in one.get("anyOf", ())
        else {"anyOf": [one, null]}
        for name, one in schema["properties"].items()
    }
    return schema | {"properties": properties}


def _with_model(schema: dict[str, Any]) -> dict[str, Any]:
    schema.setdefault("properties", {}).setdefault("model", {"type": "string"})
    definitions = schema.pop("$defs", {})
    inlined: dict[str, Any] = _inline(schema, definitions)
    return inlined


def _inline(node: Any, definitions: dict[str, Any]) -> Any:
    """References replaced by what they name: they count from the root of the whole document."""
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline(definitions[node["$ref"].rpartition("/")[2]], definitions)
    return {name: _inline(value, definitions) for name, value in node.items()}
