from typing import Any

import pytest

from modelyard.contract.operations import Operation
from modelyard.ingress.app import ROUTES
from modelyard.ingress.openapi import document, request_body
from modelyard.testing.in_memory import InMemoryIngress


def schema(operation: Operation) -> dict[str, Any]:
    content: dict[str, Any] = request_body(operation)["requestBody"]["content"]
    record: dict[str, Any] = content["application/json"]["schema"]
    return record


@pytest.mark.parametrize("operation", Operation)
def test_every_operation_describes_its_model_and_its_input(operation: Operation) -> None:
    record = schema(operation)
    assert record["properties"]["model"]["type"] == "string"
    assert "model" in record["required"]
    assert len(record["required"]) >= 1


def test_platform_fields_are_not_offered() -> None:
    for operation in Operation:
        assert "priority" not in schema(operation)["properties"]


def test_the_document_holds_every_route_and_its_references_resolve() -> None:
    whole = document(InMemoryIngress().app)
    assert {path for path, _ in ROUTES} <= set(whole["paths"])

    def follow(node: Any) -> None:
        if isinstance(node, dict):
            if isinstance(reference := node.get("$ref"), str):
                target: Any = whole
                for part in reference.removeprefix("#/").split("/"):
                    assert part in target, f"{reference} leads nowhere"
                    target = target[part]
            for value in node.values():
                follow(value)
        elif isinstance(node, list):
            for value in node:
                follow(value)

    follow(whole)


def test_the_bearer_key_is_declared() -> None:
    whole = document(InMemoryIngress().app)
    for path, _ in ROUTES:
        for requirement in whole["paths"][path]["post"]["security"]:
            assert set(requirement) <= set(whole["components"]["securitySchemes"])


def test_feedback_is_described_as_one_word_of_three() -> None:
    described = document(InMemoryIngress().app)["paths"]["/v1/feedback"]["post"]
    schema = described["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["id"]
    assert [one["required"] for one in schema["oneOf"]] == [["score"], ["thumbs"], ["label"]]
    # A null says nothing, so a word may not be one.
    assert all("anyOf" not in schema["properties"][name] for name in ("score", "thumbs", "label"))
    assert set(described["responses"]) >= {"200", "400", "401", "403", "404"}
