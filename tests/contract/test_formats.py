from typing import Any

import pytest

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.formats import check_formats

SCHEMA = {"name": "x", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"response_format": {"type": "text"}},
        {"response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": SCHEMA}},
        {"response_format": {"type": "structural_tag", "format": {}}},
        {"text": {"verbosity": "low"}},
        {"text": {"format": None}},
        {"text": {"format": {"type": "json_schema", "strict": True} | SCHEMA}},
        {"structured_outputs": {"regex": "a", "whitespace_pattern": " ", "json": None}},
        {"structured_outputs": {"json_object": True, "disable_any_whitespace": True}},
    ],
)
def test_every_documented_shape_passes(fields: dict[str, Any]) -> None:
    check_formats(fields)


@pytest.mark.parametrize(
    ("response_format", "param"),
    [
        ({}, "type"),
        ({"type": "xml"}, "type"),
        ({"type": ["text"]}, "type"),
        ({"type": "json_schema"}, "json_schema"),
        ({"type": "json_schema", "json_schema": "str"}, "json_schema"),
        ({"type": "json_schema", "json_schema": {"schema": {}}}, "json_schema.name"),
        ({"type": "json_schema", "json_schema": SCHEMA | {"schema": "str"}}, "json_schema.schema"),
    ],
)
def test_a_wrong_response_format_is_told_by_its_place(
    response_format: dict[str, Any], param: str
) -> None:
    where = f"response_format.{param}"
    assert refused(response_format=response_format) == where


@pytest.mark.parametrize(
    ("form", "param"),
    [
        ("text", "text.format"),
        ({"type": "structural_tag"}, "text.format.type"),
        ({"type": "json_schema", "schema": {}}, "text.format.name"),
        ({"type": "json_schema", "name": "", "schema": {}}, "text.format.name"),
        ({"type": "json_schema", "name": "x"}, "text.format.schema"),
        ({"type": "json_schema", "name": "x", "schema": []}, "text.format.schema"),
    ],
)
def test_a_wrong_format_of_a_text_is_told_by_its_place(form: Any, param: str) -> None:
    assert refused(text={"format": form}) == param


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        ({"foo": 1}, "unknown key 'foo'"),
        ({"regex": "a", "_backend": "x"}, "unknown key '_backend'"),
        ({}, "exactly one of json, regex"),
        ({"disable_any_whitespace": True}, "exactly one of"),
        ({"regex": "a", "choice": ["b"]}, "exactly one of"),
    ],
)
def test_structured_outputs_hold_one_constraint_and_no_unknown_key(
    outputs: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        check_formats({"structured_outputs": outputs})
    assert caught.value.param == "structured_outputs"


def refused(**fields: Any) -> str | None:
    """The place that a refusal names, which its sentence begins with."""
    with pytest.raises(InvalidRequest) as caught:
        check_formats(fields)
    assert caught.value.message.startswith(f"{caught.value.param} must be ")
    return caught.value.param
