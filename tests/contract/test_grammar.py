import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.contract.errors import InvalidRequest
from modelyard.contract.grammar import MAX_DEPTH, MAX_TOOLS, check_grammars

TEXT = {"type": "string"}


def properties(count: int, **more: Any) -> dict[str, Any]:
    names = {f"k{index}": TEXT for index in range(count)}
    return {"type": "object", "properties": names} | more


def nested(depth: int) -> dict[str, Any]:
    return {"items": nested(depth - 1)} if depth > 1 else {}


def as_format(schema: Any) -> dict[str, Any]:
    wrapped = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    return {"response_format": wrapped}


def as_tool(schema: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]}


def outputs(**fields: Any) -> dict[str, Any]:
    return {"structured_outputs": fields}


def refused(body: dict[str, Any]) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        check_grammars(body)
    assert len(caught.value.message) < 200
    return caught.value


@pytest.mark.parametrize(
    "schema",
    [
        properties(200),
        properties(32, minProperties=1, maxProperties=32),
        {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 1000},
        {"type": "string", "pattern": "^[a-z]{2,64}$", "maxLength": 10_000},
        {"enum": [f"country {index}" for index in range(250)]},
        properties(3, required=["k0"], additionalProperties=False),
        {"properties": {"pattern": TEXT, "properties": TEXT, "minLength": {"type": "integer"}}},
    ],
)
def test_schemas_that_people_write_pass(schema: dict[str, Any]) -> None:
    check_grammars(as_format(schema) | outputs(json=json.dumps(schema)) | as_tool(schema))


def test_an_agents_tools_pass() -> None:
    parameter = {"type": "string", "description": "what it is for " * 10}
    schema = {"type": "object", "properties": dict.fromkeys("abcde", parameter)}
    check_grammars({"tools": as_tool(schema)["tools"] * 40})


WORDS = "customer order status total currency created shipped address email phone".split()


@pytest.mark.parametrize("more", [{}, {"additionalProperties": False}])
def test_forty_tools_of_ten_properties_pass(more: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": dict.fromkeys(WORDS, TEXT)} | more
    check_grammars({"tools": as_tool(schema)["tools"] * 40})


def test_a_schema_as_pydantic_writes_it_passes() -> None:
    """10 KB: models that name one another, values that may be null, a union told by its kind."""
    text = TEXT | {"description": "What this field holds. " * 4}
    maybe = {"anyOf": [{"$ref": "#/$defs/M0"}, {"type": "null"}], "default": None}
    models = {
        f"M{index}": {
            "type": "object",
            "properties": dict.fromkeys(WORDS[:6], text) | {"kind": {"const": index}, "up": maybe},
            "required": WORDS[:3],
        }
        for index in range(12)
    }
    kinds = {"oneOf": [{"$ref": f"#/$defs/M{index}"} for index in range(12)]}
    labels = {"type": "object", "additionalProperties": TEXT}
    schema = {
        "$defs": models,
        "properties": {"steps": {"type": "array", "items": kinds}, "labels": labels},
        "required": ["steps"],
    }
    assert len(json.dumps(schema)) > 10_000
    check_grammars(as_format(schema))


def test_an_object_beside_whose_properties_others_may_come_passes() -> None:
    schema = {"properties": dict.fromkeys(WORDS, TEXT), "additionalProperties": True}
    check_grammars(as_format(schema))


TOO_MUCH: dict[str, Any] = {
    "the reviewer's 57 KB": properties(2000, minProperties=1000),
    "properties that are counted": properties(33, minProperties=2),
    "properties that are counted from above": properties(33, maxProperties=2),
    "entries": {"enum": list(range(2100))},
    "bytes": {"enum": ["x" * 66_000]},
    "depth": nested(MAX_DEPTH + 1),
    "pattern": {"pattern": "a" * 513},
    "patterns together": {"anyOf": [{"pattern": "a" * 500}] * 3},
    "properties of one object": properties(401),
    "properties of two objects": {"items": [properties(300), properties(300)]},
    "properties beside others": properties(300, additionalProperties=True),
    "properties beside others of a kind": properties(300, additionalProperties=TEXT),
    "properties beside others, unevaluated": properties(300, unevaluatedProperties={}),
    "names beside others": {"properties": {"n" * 300: TEXT}, "additionalProperties": True},
    "a union that comes back": {"anyOf": [{"items": {"$ref": "#"}}] * 50},
    "unions that lead to unions": {
        "$defs": {"a": {"anyOf": [{"items": TEXT}] * 50}},
        "oneOf": [{"items": {"$ref": "#/$defs/a"}}] * 50,
    },
    "types": {"type": ["array"] * 8, "items": {"$ref": "#"}},
    "one type twice": {"type": ["array", "array"], "items": {"$ref": "#"}},
    "pattern of names": {"patternProperties": {"a" * 2049: TEXT}},
    "repetition": {"pattern": "(a{0,1000}){0,1000}"},
    "repetition without an end": {"pattern": "a{257,}"},
    "repetition of many digits": {"pattern": "a{" + "9" * 400 + "}"},
    "ranges": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 9**15}] * 33},
} | {
    name: {name: 10**400}
    for name in (
        *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
        *("minContains", "maxContains"),
    )
}


@pytest.mark.parametrize("schema", TOO_MUCH.values(), ids=TOO_MUCH)
@pytest.mark.parametrize("carrier", [as_format, as_tool, lambda schema: outputs(json=schema)])
def test_each_bound_holds_in_each_field(carrier: Any, schema: dict[str, Any]) -> None:
    body = carrier(schema)
    assert refused(body).param == next(iter(body))


@pytest.mark.parametrize("field", ["json", "structural_tag"])
def test_a_schema_sent_as_text_is_read(field: str) -> None:
    error = refused(outputs(**{field: json.dumps(TOO_MUCH["properties that are counted"])}))
    assert error.param == "structured_outputs"
    assert refused(outputs(**{field: "{"})).param == f"structured_outputs.{field}"


@pytest.mark.parametrize(
    "fields",
    [
        {"regex": "a" * 513},
        {"regex": "(.{0,300}a){3}"},
        {"whitespace_pattern": "a" * 513},
        {"grammar": "a" * 2049},
        {"grammar": 'root ::= "a"{1,1000}'},
        {"grammar": 'start: "a" ~ 1..1000'},
        {"choice": ["a"] * 2048},
    ],
)
def test_texts_of_structured_outputs_are_bounded(fields: dict[str, Any]) -> None:
    assert refused(outputs(**fields)).param == "structured_outputs"


def test_the_fields_share_one_bound() -> None:
    schema = {"enum": list(range(1100))}
    check_grammars(as_format(schema))
    assert refused(as_format(schema) | as_tool(schema)).param == "tools"


def test_tools_are_counted() -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    check_grammars({"tools": [tool] * MAX_TOOLS})
    assert refused({"tools": [tool] * (MAX_TOOLS + 1)}).param == "tools"


@pytest.mark.parametrize("name", ["response_format", "structured_outputs", "tools"])
@pytest.mark.parametrize("value", ["x", 5, True, ["x"], [[]]])
def test_a_field_has_its_type(name: str, value: object) -> None:
    assert refused({name: value}).param == name


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"},
    ],
)
@pytest.mark.parametrize("carrier", [as_format, as_tool, lambda schema: outputs(json=schema)])
def test_a_schema_that_no_text_satisfies_is_refused(carrier: Any, schema: dict[str, Any]) -> None:
    """The engine would find out itself, and answer 500."""
    assert "stands for itself" in refused(carrier(schema)).message


def test_a_schema_of_schemas_passes() -> None:
    check_grammars(as_tool({"properties": {"schema": {"$ref": "#"}, "json": {"$ref": "#"}}}))


def test_lengths_cost_once_however_many_strings_share_them() -> None:
    def strings(*lengths: int) -> dict[str, Any]:
        return {
            "properties": {
                f"k{index}": TEXT | {"maxLength": length} for index, length in enumerate(lengths)
            }
        }

    check_grammars(as_format(strings(*[255] * 40, 10, 20, 50, 1000, 2000)))
    assert "fewer lengths" in refused(as_format(strings(255, 256, 257, 258, 259))).message


KEYS = st.text(max_size=4) | st.sampled_from(
    ["pattern", "json", "structural_tag", "properties", "minProperties", "patternProperties"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
FIELDS = st.sampled_from(["response_format", "structured_outputs", "tools"])


@given(st.dictionaries(FIELDS, JSON | st.dictionaries(KEYS, JSON) | st.lists(JSON)))
def test_any_json_passes_or_is_a_request_error(body: dict[str, Any]) -> None:
    try:
        check_grammars(body)
    except InvalidRequest:
        return
    json.dumps(body)
