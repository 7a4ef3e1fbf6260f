"""Whether two answers are the same, by what the operation answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from modelyard.contract.operations import Operation
from modelyard.contract.small_answers import Head, classify, embeddings, rerank, score
from modelyard.ingress.shadow_match import same

HEAD = Head("a-1", "m", 1, 7)
DOCUMENTS = ["a", "b", "c"]


def alike(operation: Operation, one: bytes, other: bytes, **how: Any) -> bool | None:
    return same(operation, one, other, **({"stream": False, "greedy": False} | how))


def chat(text: str) -> bytes:
    return json.dumps({"choices": [{"index": 0, "message": {"content": text}}]}).encode()


def ranked(*scores: float, documents: list[str] = DOCUMENTS) -> bytes:
    return rerank(HEAD, scores, documents, None, return_documents=False)


def test_texts_are_compared_where_they_were_made_greedily() -> None:
    assert alike(Operation.CHAT, chat("a"), chat("a"), greedy=True) is True
    assert alike(Operation.CHAT, chat("a"), chat("b"), greedy=True) is False
    assert alike(Operation.CHAT, chat("a"), chat("a"), greedy=False) is None


def test_labels_are_compared_and_not_their_probabilities() -> None:
    one = classify(HEAD, [[0.9, 0.1], [0.2, 0.8]], ["x", "y"])
    near = classify(HEAD, [[0.6, 0.4], [0.4, 0.6]], ["x", "y"])
    other = classify(HEAD, [[0.9, 0.1], [0.6, 0.4]], ["x", "y"])
    assert alike(Operation.CLASSIFY, one, near) is True
    assert alike(Operation.CLASSIFY, one, other) is False


def test_orders_are_compared_and_not_their_scores() -> None:
    assert alike(Operation.RERANK, ranked(0.9, 0.5, 0.1), ranked(0.5, 0.4, 0.3)) is True
    assert alike(Operation.RERANK, ranked(0.9, 0.5, 0.1), ranked(0.5, 0.9, 0.1)) is False
    one, near = score(HEAD, [0.1, 0.9]), score(HEAD, [0.3, 0.4])
    assert alike(Operation.SCORE, one, near) is True
    assert alike(Operation.SCORE, one, score(HEAD, [0.9, 0.1])) is False


def test_of_one_document_nobody_can_say() -> None:
    one = ranked(0.9, documents=["a"])
    assert alike(Operation.RERANK, one, one) is None
    assert alike(Operation.SCORE, score(HEAD, [0.9]), score(HEAD, [0.1])) is None


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_vectors_are_the_same_when_they_point_the_same_way(encoding: Any) -> None:
    one = embeddings(HEAD, [[1.0, 0.0], [0.0, 2.0]], encoding)
    near = embeddings(HEAD, [[5.0, 0.1], [0.1, 9.0]], encoding)
    other = embeddings(HEAD, [[5.0, 0.1], [9.0, 0.1]], encoding)
    shorter = embeddings(HEAD, [[1.0], [2.0]], encoding)
    assert alike(Operation.EMBED, one, near) is True
    assert alike(Operation.EMBED, one, other) is False
    assert alike(Operation.EMBED, one, shorter) is False
    assert alike(Operation.EMBED, one, embeddings(HEAD, [], encoding)) is False


@pytest.mark.parametrize("operation", [Operation.CHAT, Operation.CLASSIFY, Operation.RERANK])
def test_a_copy_of_another_shape_is_not_the_same_and_of_the_original_nobody_can_say(
    operation: Operation,
) -> None:
    good = {
        Operation.CHAT: chat("a"),
        Operation.CLASSIFY: classify(HEAD, [[1.0]], ["x"]),
        Operation.RERANK: ranked(0.9, 0.5, 0.1),
    }[operation]
    assert alike(operation, good, b"{", greedy=True) is False
    assert alike(operation, b"{", good, greedy=True) is None
