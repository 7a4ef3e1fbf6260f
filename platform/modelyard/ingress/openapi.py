"""The OpenAPI description of request bodies. They are parsed by us, so FastAPI cannot see them."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from modelyard.contract.native import GenerateRequest
from modelyard.contract.openai import FIELDS, READ
from modelyard.contract.operations import Operation
from modelyard.ingress.work import SMALL


def document(app: FastAPI) -> dict[str, Any]:
    """The whole description, with the scheme that the routes' `security` names."""
    record = app.openapi()
    record.setdefault("components", {})["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"}
    }
    for path in record["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)  # FastAPI's own; ours is a 400
    return record


def request_body(operation: Operation) -> dict[str, Any]:
    """`openapi_extra` for a route: its JSON schema, and the bearer key."""
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _schema(operation)}},
        },
        "security": [{"bearer": []}],
    }


def _schema(operation: Operation) -> dict[str, Any]:
    if operation is Operation.GENERATE:
        return _with_model(GenerateRequest.model_json_schema())
    if operation in SMALL:
        return _with_model(SMALL[operation].model_json_schema())
    # The engine owns these fields' types: we list the names that pass.
    required = "messages" if operation is Operation.CHAT else "prompt"
    names = sorted(FIELDS[operation] | READ)
    return {
        "type": "object",
        "required": ["model", required],
        "properties": {name: {} for name in names} | {"model": {"type": "string"}},
    }


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
