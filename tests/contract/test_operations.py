import pytest

from modelyard.contract.operations import (
    OPERATIONS_OF,
    ROUTE_OF,
    Kind,
    Operation,
    answers,
    routes_for,
)


def test_every_operation_is_answered_by_exactly_one_kind() -> None:
    for operation in Operation:
        assert sum(answers(kind, operation) for kind in Kind) == 1
    assert set(OPERATIONS_OF) == set(Kind)
    assert set(ROUTE_OF) == set(Operation)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            Kind.GENERATOR,
            "/v1/generate or /v1/chat/completions or /v1/completions or /v1/responses",
        ),
        (Kind.EMBEDDER, "/v1/embeddings"),
        (Kind.CLASSIFIER, "/v1/classify"),
        (Kind.RERANKER, "/v1/rerank or /v1/score"),
    ],
)
def test_a_kind_names_its_routes(kind: Kind, expected: str) -> None:
    assert routes_for(kind) == expected
