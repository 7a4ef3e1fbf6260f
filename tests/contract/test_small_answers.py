"""Answers of the small models, byte for byte as their clients read them."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types import CreateEmbeddingResponse

from modelyard.contract import small_answers
from modelyard.contract.small_answers import Head

HEAD = Head(id="id-1", model="support-embed", created_s=1_700_000_000, prompt_tokens=7)
USAGE = {"prompt_tokens": 7, "total_tokens": 7}


def rerank(scores: list[float], top_n: int | None = None, *, documents: bool = False) -> Any:
    texts = [f"text {index}" for index in range(len(scores))]
    data = small_answers.rerank(HEAD, scores, texts, top_n, return_documents=documents)
    return json.loads(data)


def test_embeddings_have_openais_shape() -> None:
    data = small_answers.embeddings(HEAD, [[0.5, -0.25], [1.0, 0.0]], "float")
    assert json.loads(data) == {
        "object": "list",
        "id": "id-1",
        "model": "support-embed",
        "usage": USAGE,
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.5, -0.25]},
            {"object": "embedding", "index": 1, "embedding": [1.0, 0.0]},
        ],
    }
    CreateEmbeddingResponse.model_validate_json(data, strict=True)


@settings(deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_both_encodings_carry_the_same_float32(vector: list[float]) -> None:
    as_list = json.loads(small_answers.embeddings(HEAD, [vector], "float"))
    as_text = json.loads(small_answers.embeddings(HEAD, [vector], "base64"))
    raw = base64.b64decode(as_text["data"][0]["embedding"])
    assert list(struct.unpack(f"<{len(vector)}f", raw)) == vector
    assert as_list["data"][0]["embedding"] == vector


def test_rerank_is_sorted_with_ties_by_index() -> None:
    assert rerank([0.25, 0.75, 0.25, 1.0]) == {
        "id": "id-1",
        "model": "support-embed",
        "results": [
            {"index": 3, "relevance_score": 1.0},
            {"index": 1, "relevance_score": 0.75},
            {"index": 0, "relevance_score": 0.25},
            {"index": 2, "relevance_score": 0.25},
        ],
        "usage": USAGE,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}},
    }


def test_rerank_returns_documents_when_told() -> None:
    assert rerank([0.5], documents=True)["results"][0]["document"] == {"text": "text 0"}


@pytest.mark.parametrize(("top_n", "kept"), [(None, 3), (0, 3), (1, 1), (3, 3), (9, 3)])
def test_top_n_is_clamped(top_n: int | None, kept: int) -> None:
    assert len(rerank([0.1, 0.2, 0.3], top_n)["results"]) == kept


@pytest.mark.parametrize(("documents", "units"), [(1, 1), (100, 1), (101, 2)])
def test_a_search_unit_is_a_hundred_documents(documents: int, units: int) -> None:
    meta = rerank([0.5] * documents)["meta"]
    assert meta["billed_units"]["search_units"] == units


def test_score_has_vllms_shape() -> None:
    assert json.loads(small_answers.score(HEAD, [0.5, 0.25])) == {
        "id": "id-1",
        "object": "list",
        "created": 1_700_000_000,
        "model": "support-embed",
        "data": [
            {"index": 0, "object": "score", "score": 0.5},
            {"index": 1, "object": "score", "score": 0.25},
        ],
        "usage": USAGE,
    }


def test_classify_has_vllms_shape_and_names_the_most_probable() -> None:
    record = json.loads(small_answers.classify(HEAD, [[0.25, 0.75]], ["refund", "login"]))
    assert record["data"] == [
        {"index": 0, "label": "login", "probs": [0.25, 0.75], "num_classes": 2}
    ]
    assert (record["object"], record["created"]) == ("list", 1_700_000_000)
    assert record["usage"] == USAGE
