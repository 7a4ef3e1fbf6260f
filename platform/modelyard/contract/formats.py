"""The shape of what constrains an answer: response_format, text.format and structured_outputs.

Read here, because an engine's own models of them answer with the names of their classes, and with
the first branch of a union that did not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from modelyard.contract.errors import InvalidRequest

_TEXT_FORMATS: Final = ("text", "json_object", "json_schema")
_RESPONSE_FORMATS: Final = (*_TEXT_FORMATS, "structural_tag")
_KINDS: Final = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
_OPTIONS: Final = (
    *("whitespace_pattern", "disable_any_whitespace", "disable_additional_properties"),
)


def check_formats(fields: Mapping[str, Any]) -> None:
    """Check the fields that are given, each an object. Raises InvalidRequest naming the place."""
    if (response_format := fields.get("response_format")) is not None:
        _check_response_format(response_format)
    if (text := fields.get("text")) is not None and text.get("format") is not None:
        _check_text_format(text["format"])
    if (outputs := fields.get("structured_outputs")) is not None:
        _check_structured_outputs(outputs)


def _check_response_format(response_format: dict[str, Any]) -> None:
    where = "response_format"
    if _type_of(response_format, _RESPONSE_FORMATS, where) == "json_schema":
        schema = response_format.get("json_schema")
        if not isinstance(schema, dict):
            raise _wrong(f"{where}.json_schema", "an object with name and schema")
        _check_schema(schema, f"{where}.json_schema")


def _check_text_format(form: Any) -> None:
    where = "text.format"
    if not isinstance(form, dict):
        raise _wrong(where, "an object")
    if _type_of(form, _TEXT_FORMATS, where) == "json_schema":
        if form.get("schema") is None:
            raise _wrong(f"{where}.schema", "an object")
        _check_schema(form, where)


def _type_of(form: dict[str, Any], known: tuple[str, ...], where: str) -> str:
    kind = form.get("type")
    if not isinstance(kind, str) or kind not in known:
        raise _wrong(f"{where}.type", f"one of {', '.join(known)}")
    return kind


def _check_schema(form: dict[str, Any], where: str) -> None:
    if not isinstance(name := form.get("name"), str) or not name:
        raise _wrong(f"{where}.name", "a text, and not empty")
    if not isinstance(form.get("schema"), dict | None):
        raise _wrong(f"{where}.schema", "an object")


def _check_structured_outputs(outputs: dict[str, Any]) -> None:
    name = "structured_outputs"
    for key in outputs:
        if key not in _KINDS and key not in _OPTIONS:
            raise InvalidRequest(f"{name}: unknown key {key[:64]!r}: remove it", param=name)
    if sum(outputs.get(kind) is not None for kind in _KINDS) != 1:
        raise InvalidRequest(f"{name} must hold exactly one of {', '.join(_KINDS)}", param=name)


def _wrong(where: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{where} must be {what}", param=where)
