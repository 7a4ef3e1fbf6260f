"""Which answers of a replica are the version's own, and what is said of the others."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest

from modelyard.lifecycle.golden import (
    ClassifierPrompt,
    EmbedderPrompt,
    GeneratorPrompt,
    RerankerPrompt,
)
from modelyard.lifecycle.observed import (
    Classified,
    Embedded,
    Generated,
    NotFinite,
    Ranked,
)
from modelyard.lifecycle.questions import ChatMessage
from modelyard.lifecycle.self_test import compare

PROMPT = GeneratorPrompt(
    id="capital",
    messages=(ChatMessage(role="user", content="The capital of France is"),),
    prompt_token_ids=(1, 2, 3),
    expected_token_ids=(10, 11, 12),
    expected_text="Paris.",
    logprobs=(-0.1, -0.2, -0.3),
)
ROWS = ({10: -0.1, 20: -3.0}, {11: -0.2}, {12: -0.3})


def generated(
    tokens: tuple[int, ...] = (10, 11, 12),
    rows: tuple[Mapping[int, float], ...] = ROWS,
    prompt: tuple[int, ...] = (1, 2, 3),
    text: str = "Paris.",
) -> Generated:
    return Generated(prompt, tokens, text, rows)


def said(observed: Generated) -> str:
    mismatch = compare(PROMPT, observed)
    assert mismatch is not None
    assert mismatch.prompt_id == "capital"
    return str(mismatch)


def test_the_same_answer_passes() -> None:
    assert compare(PROMPT, generated()) is None


def test_other_ids_of_the_input_are_told_before_the_output() -> None:
    text = said(generated(prompt=(1, 2, 9, 4), tokens=(5, 5, 5), text="bananas"))
    assert text == (
        "golden prompt capital: the tokenizer or the chat template gives other ids, from token 2 "
        "on: expected [3], got [9, 4] of 4 in all"
    )


def test_a_longer_input_is_told_at_its_end() -> None:
    assert "from token 3 on: expected [], got [4] of 4" in said(generated(prompt=(1, 2, 3, 4)))


def test_another_text_says_both() -> None:
    rows = ({20: -0.1, 10: -3.0}, {11: -0.2}, {12: -0.3})
    text = said(generated(tokens=(20, 11, 12), rows=rows, text="Lyon."))
    assert text == "golden prompt capital: the text differs: expected 'Paris.', got 'Lyon.'"


def test_a_near_tie_passes_and_ends_the_comparison() -> None:
    """Another device may round the other way; from there on the texts have nothing in common."""
    rows = ({20: -0.1, 10: -0.4}, {99: -9.0}, {98: -9.0})
    assert compare(PROMPT, generated(tokens=(20, 99, 98), rows=rows, text="Lyon!")) is None


def test_a_near_tie_of_a_token_that_became_unlikely_does_not() -> None:
    rows = ({20: -2.9, 10: -3.0}, {99: -9.0}, {98: -9.0})
    assert "log-probability of token 0" in said(generated(tokens=(20, 99, 98), rows=rows))


def test_a_token_that_is_not_among_the_likeliest_is_no_tie() -> None:
    rows = ({20: -0.1}, {11: -0.2}, {12: -0.3})
    assert "the text differs" in said(generated(tokens=(20, 11, 12), rows=rows))


def test_the_same_text_with_other_probabilities_fails() -> None:
    rows = (ROWS[0], {11: -0.9}, ROWS[2])
    assert said(generated(rows=rows)) == (
        "golden prompt capital: log-probability of token 1, within 0.5: expected -0.200, got -0.900"
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_fails_with_words(bad: float) -> None:
    rows = (ROWS[0], {11: bad}, ROWS[2])
    text = said(generated(rows=rows))
    assert "the model computes no numbers: expected finite numbers, got" in text


def test_an_answer_that_ends_early_fails() -> None:
    assert "it stopped early" in said(generated(tokens=(10,), rows=ROWS[:1], text="Pa"))


def test_an_answer_that_goes_on_fails() -> None:
    rows = (*ROWS, {13: -0.1})
    assert "it went on too long" in said(generated(tokens=(10, 11, 12, 13), rows=rows))


def test_long_texts_are_cut() -> None:
    rows = ({20: -0.1}, {11: -0.2}, {12: -0.3})
    assert len(said(generated(tokens=(20, 11, 12), rows=rows, text="x" * 999))) < 140


EMBED = EmbedderPrompt(id="short", text="x", token_ids=(1, 2), expected=(0.6, 0.8))


@pytest.mark.parametrize(
    ("vector", "ids", "expected"),
    [
        ((0.6, 0.8), (1, 2), None),
        ((0.61, 0.79), (1, 2), None),
        ((0.8, 0.6), (1, 2), "the vector's cosine: expected 0.99, got 0.9600"),
        ((0.6, 0.8, 0.0), (1, 2), "dimensions: expected 2, got 3"),
        ((0.6, math.nan), (1, 2), "the model computes no numbers"),
        ((0.0, 0.0), (1, 2), "got 0.0000"),
        ((0.6, 0.8), (1, 3), "other ids, from token 1"),
    ],
)
def test_an_embedding(
    vector: tuple[float, ...], ids: tuple[int, ...], expected: str | None
) -> None:
    mismatch = compare(EMBED, Embedded(ids, vector))
    if expected is None:
        assert mismatch is None
    else:
        assert expected in str(mismatch)


CLASSIFY = ClassifierPrompt(id="c", text="x", token_ids=(1,), expected={"yes": 0.9, "no": 0.1})


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ({"yes": 0.88, "no": 0.12}, None),
        ({"yes": 0.7, "no": 0.3}, "the probability of yes, within 0.05: expected 0.900, got 0.700"),
        ({"yes": 0.9, "maybe": 0.1}, "the labels: expected 'no, yes', got 'maybe, yes'"),
        ({"yes": math.nan, "no": 0.1}, "the model computes no numbers"),
    ],
)
def test_a_classification(probabilities: dict[str, float], expected: str | None) -> None:
    mismatch = compare(CLASSIFY, Classified((1,), probabilities))
    if expected is None:
        assert mismatch is None
    else:
        assert expected in str(mismatch)


RANK = RerankerPrompt(
    id="r", query="q", documents=("a", "b"), token_ids=((1,), (2,)), expected=(0.9, 0.1)
)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((0.9, 0.14), None),
        ((0.9, 0.2), "the score of document 1, within 0.05: expected 0.100, got 0.200"),
        ((0.9,), "scores: expected 2, got 1"),
        ((0.9, math.inf), "the model computes no numbers"),
    ],
)
def test_a_ranking(scores: tuple[float, ...], expected: str | None) -> None:
    mismatch = compare(RANK, Ranked(((1,), (2,)), scores))
    if expected is None:
        assert mismatch is None
    else:
        assert expected in str(mismatch)


def test_an_answer_path_that_refuses_its_numbers_fails_the_test() -> None:
    text = str(compare(EMBED, NotFinite("the model gave no finite numbers")))
    assert text.endswith("expected finite numbers, got the model gave no finite numbers")


def test_an_answer_of_another_kind_fails() -> None:
    assert "another kind of answer" in str(compare(EMBED, Classified((1, 2), {"a": 1.0})))
