from typing import Any

import pytest

from modelyard.contract.schema_loops import has_loop, rival_branches

TEXT = {"type": "string"}


def chain(length: int, end: dict[str, Any]) -> dict[str, Any]:
    links = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}]} for i in range(length)}
    return {"$defs": links | {f"d{length}": end}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"anyOf": [TEXT, {"oneOf": [{"$ref": "#"}]}]},
        {"allOf": [TEXT, {"$ref": "#/allOf/1"}]},
        {"properties": {"a/b": {"$ref": "#/properties/a~1b"}}},
        chain(900, {"$ref": "#/$defs/d0"}),
    ],
)
def test_a_schema_that_stands_for_itself_is_found(schema: dict[str, Any]) -> None:
    assert has_loop(schema)


@pytest.mark.parametrize(
    "schema",
    [
        TEXT,
        {"properties": {"next": {"$ref": "#"}}},
        {"anyOf": [TEXT, {"type": "array", "items": {"$ref": "#"}}]},
        {"$ref": "https://example.com/schema"},
        {"$ref": "#/nowhere/at/all"},
        {"$ref": "#/anyOf/9", "anyOf": [TEXT]},
        {"$ref": 5},
        {"$defs": {"a": TEXT}, "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]},
        chain(900, TEXT),
    ],
)
def test_a_schema_that_ends_or_goes_on_with_another_value_is_fine(schema: dict[str, Any]) -> None:
    assert not has_loop(schema)


def test_references_that_fan_out_are_followed_once_each() -> None:
    """Twice each would be 2^60 visits."""
    fan = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)}
    assert not has_loop({"$defs": fan | {"d60": TEXT}, "$ref": "#/$defs/d0"})


def test_branches_that_hold_a_reference_are_rivals_of_the_first() -> None:
    reference = {"type": "array", "items": {"$ref": "#"}}
    assert rival_branches({"anyOf": [reference] * 5 + [TEXT] * 5}) == 4
    assert rival_branches({"anyOf": [{"oneOf": [reference] * 3}, reference]}) == 3
    assert rival_branches({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}) == 0
    assert rival_branches({"anyOf": [TEXT] * 300}) == 0
