"""Embeddings and models through the real `openai` client, with real models behind it."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

import openai
import pytest

pytestmark = pytest.mark.integration

TEXTS = ["a refund", "money back"]


def embed(client: openai.OpenAI, text: Any, **options: Any) -> Any:
    return client.embeddings.create(model="support-embed", input=text, **options)


def vectors_of(answer: Any) -> list[list[float]]:
    return [item.embedding for item in answer.data]


def test_both_encodings_are_the_same_unit_vectors(openai_client: Any) -> None:
    floats = embed(openai_client, TEXTS, encoding_format="float")
    raw = openai_client.embeddings.with_raw_response.create(
        model="support-embed", input=TEXTS, encoding_format="base64"
    )
    encoded = raw.http_response.json()["data"][0]["embedding"]
    numbers = struct.unpack("<384f", base64.b64decode(encoded))
    assert numbers == pytest.approx(floats.data[0].embedding, abs=1e-6)
    for vector in vectors_of(floats):
        assert math.isclose(sum(x * x for x in vector), 1.0, abs_tol=1e-4)
    assert floats.usage.prompt_tokens > 0


def test_the_clients_default_encoding_is_decoded_by_it(openai_client: Any) -> None:
    """It asks for base64 when nobody says which, and gives its caller numbers."""
    [vector] = vectors_of(embed(openai_client, "a refund"))
    [same] = vectors_of(embed(openai_client, "a refund", encoding_format="float"))
    assert vector == pytest.approx(same, abs=1e-6)


def test_a_text_a_list_token_ids_and_lists_of_them(openai_client: Any) -> None:
    alone = vectors_of(embed(openai_client, TEXTS[0]))
    listed = vectors_of(embed(openai_client, TEXTS))
    assert listed[0] == pytest.approx(alone[0], abs=1e-2)
    ids = [101, 7592, 102]  # [CLS] hello [SEP]
    by_ids = vectors_of(embed(openai_client, ids))
    assert by_ids[0] == pytest.approx(vectors_of(embed(openai_client, "hello"))[0], abs=1e-2)
    assert len(vectors_of(embed(openai_client, [ids, ids]))) == 2


def test_fewer_dimensions_are_the_first_and_of_unit_length(openai_client: Any) -> None:
    [whole] = vectors_of(embed(openai_client, TEXTS[0]))
    [short] = vectors_of(embed(openai_client, TEXTS[0], dimensions=64))
    length = math.sqrt(sum(x * x for x in whole[:64]))
    assert short == pytest.approx([x / length for x in whole[:64]], abs=1e-3)


@pytest.mark.parametrize(
    ("text", "options", "param", "word"),
    [
        ([10**6], {}, "input", "check_embedding_ctx_length=False"),
        ([[101], [10**6]], {}, "input", "check_embedding_ctx_length=False"),
        ("", {}, "input", "empty"),
        ([], {}, "input", "at least one"),
        (["a", ""], {}, "input", "empty"),
        ([[]], {}, "input", "empty"),
        ("a", {"dimensions": 385}, "dimensions", "384"),
        ("a", {"dimensions": 0}, "dimensions", ""),
        ("a", {"encoding_format": "hex"}, "encoding_format", ""),
    ],
)
def test_a_wrong_input_is_refused_and_says_why(
    openai_client: Any, text: Any, options: dict[str, Any], param: str, word: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        embed(openai_client, text, **options)
    assert caught.value.param == param
    assert word in caught.value.message


def test_similar_sentences_lie_closer_than_others(openai_client: Any) -> None:
    texts = ["How do I get a refund?", "I want my money back", "The weather is nice today"]
    vectors = vectors_of(embed(openai_client, texts))
    near, far = (sum(a * b for a, b in zip(vectors[0], v, strict=True)) for v in vectors[1:])
    assert near > far + 0.1


def test_the_list_of_models_tells_their_kinds(openai_client: Any) -> None:
    kinds = {model.id: model.kind for model in openai_client.models.list()}
    assert kinds == {
        "support-assistant": "generator",
        "support-embed": "embedder",
        "support-intent": "classifier",
        "support-rerank": "reranker",
    }
    assert openai_client.models.retrieve("support-embed").id == "support-embed"


@pytest.mark.parametrize("name", ["nobody", "team/nobody"])
def test_a_model_that_is_not_there_is_not_found(openai_client: Any, name: str) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        openai_client.models.retrieve(name)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
    assert name in caught.value.message
