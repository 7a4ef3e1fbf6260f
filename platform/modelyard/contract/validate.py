"""From a record to a request model, with the contract's error for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from modelyard.contract.errors import InvalidRequest

Request = TypeVar("Request", bound=BaseModel)


def validated(model: type[Request], record: Mapping[str, Any]) -> Request:
    """Raises InvalidRequest for the first thing that is wrong, without its value."""
    if model.model_config.get("extra") == "forbid":
        # Here and not by pydantic, which makes an error of each of a hundred thousand names.
        for name in record:
            if name not in model.model_fields:
                raise InvalidRequest(f"{name[:64]}: unknown field: remove it", param=name[:64])
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        param = ".".join(str(part) for part in first["loc"]) or None
        text = first["msg"].removeprefix("Value error, ")
        raise InvalidRequest(f"{param or 'body'}: {text}", param=param) from error


def validated_json(model: type[Request], body: bytes) -> Request:
    """The request in a body of JSON. Raises InvalidRequest."""
    try:
        record = from_json(body)
    except ValueError as error:
        raise InvalidRequest(f"the body is not valid JSON: {error}") from error
    if not isinstance(record, dict):
        raise InvalidRequest("the body must be a JSON object")
    return validated(model, record)
