"""From text to token ids within a limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer

from modelyard.batching.tokens import TextTokenizer
from modelyard.contract.errors import InvalidRequest

CLS, SEP, REFUND, ORDER = 2, 3, 5, 6
LIMIT = 12


@pytest.fixture
def tokenizer(tiny_model: Path) -> TextTokenizer:
    backend = AutoTokenizer.from_pretrained(tiny_model).backend_tokenizer
    return TextTokenizer(backend, limit=LIMIT, vocabulary=20)


def test_a_text_is_neither_cut_nor_padded_by_what_was_saved_with_the_tokenizer(
    tokenizer: TextTokenizer,
) -> None:
    short, long = tokenizer.texts(["refund", "refund " * 10], "input")
    assert short.ids == [CLS, REFUND, SEP]
    assert long.ids == [CLS, *[REFUND] * 10, SEP]


def test_over_long_text_is_refused_with_its_index(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InvalidRequest, match="input 1 has 13 tokens, this model's limit") as caught:
        tokenizer.texts(["refund", "refund " * 11], "input")
    assert (caught.value.param, caught.value.wire_code) == ("input", "context_length_exceeded")


@pytest.mark.parametrize(("cut", "kept"), [(-1, LIMIT), (5, 5), (3, 3)])
def test_a_cut_keeps_the_special_tokens(tokenizer: TextTokenizer, cut: int, kept: int) -> None:
    (tokens,) = tokenizer.texts(["refund " * 50], "input", cut)
    assert tokens.ids == [CLS, *[REFUND] * (kept - 2), SEP]


@pytest.mark.parametrize("cut", [1, 2, LIMIT + 1])
def test_a_cut_that_cannot_be_is_refused(tokenizer: TextTokenizer, cut: int) -> None:
    with pytest.raises(InvalidRequest, match="send -1, or 3 to 12") as caught:
        tokenizer.texts(["refund"], "input", cut)
    assert caught.value.param == "truncate_prompt_tokens"


@pytest.mark.parametrize(("most", "kept"), [(4, 4), (4096, LIMIT - 2)])
def test_max_tokens_per_doc_counts_the_text_alone_and_only_ever_lowers(
    tokenizer: TextTokenizer, most: int, kept: int
) -> None:
    (tokens,) = tokenizer.texts(["refund " * 50], "documents", None, most)
    assert tokens.ids == [CLS, *[REFUND] * kept, SEP]


def test_token_ids_are_used_as_they_are_and_cut_only_when_asked(tokenizer: TextTokenizer) -> None:
    assert tokenizer.given([[CLS, 7, 8, SEP]], "input")[0].ids == [CLS, 7, 8, SEP]
    long = [CLS, *[7] * 20, SEP]
    assert tokenizer.given([long], "input", -1)[0].ids == [CLS, *[7] * (LIMIT - 2), SEP]
    with pytest.raises(InvalidRequest, match="input has 13 tokens"):
        tokenizer.given([[CLS, *[7] * 11, SEP]], "input")


@pytest.mark.parametrize("ids", [[CLS, 20, SEP], [7, 8], [CLS, 7], [7, SEP], [CLS], [20]])
def test_another_models_token_ids_are_refused_with_the_usual_cause(
    tokenizer: TextTokenizer, ids: list[int]
) -> None:
    """Also those that the vocabulary happens to have, as other words."""
    with pytest.raises(
        InvalidRequest, match=r"input 1 .*check_embedding_ctx_length=False"
    ) as caught:
        tokenizer.given([[CLS, 7, SEP], ids], "input")
    assert caught.value.param == "input"


def test_the_ids_of_a_text_are_its_token_ids(tokenizer: TextTokenizer) -> None:
    (tokens,) = tokenizer.texts(["refund order"], "input")
    assert tokenizer.given([tokens.ids], "input") == [tokens]


def test_a_pair_marks_its_second_text(tokenizer: TextTokenizer) -> None:
    (tokens,) = tokenizer.pairs(["refund"], ["order order"], ("query", "documents"))
    assert tokens.ids == [CLS, REFUND, SEP, ORDER, ORDER, SEP]
    assert tokens.types == [0, 0, 0, 1, 1, 1]


def test_a_cut_of_a_pair_shortens_the_document_never_the_query(tokenizer: TextTokenizer) -> None:
    query, documents = ["refund " * 4], ["order " * 30, "order"]
    long, short = tokenizer.pairs(query, documents, ("query", "documents"), -1)
    assert long.ids == [CLS, *[REFUND] * 4, SEP, *[ORDER] * 5, SEP]
    assert short.ids == [CLS, *[REFUND] * 4, SEP, ORDER, SEP]


def test_a_query_that_leaves_no_room_is_refused_even_with_a_cut(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InvalidRequest, match="query has 12 tokens") as caught:
        tokenizer.pairs(["refund " * 9], ["order"], ("query", "documents"), -1)
    assert caught.value.param == "query"


def test_an_over_long_pair_is_refused_with_the_documents_index(tokenizer: TextTokenizer) -> None:
    with pytest.raises(InvalidRequest, match="documents 1 has 13 tokens"):
        tokenizer.pairs(["refund"], ["order", "order " * 9], ("query", "documents"))
