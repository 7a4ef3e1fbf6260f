"""The golden file: what is read of it, what is refused, and how it is recorded."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from modelyard.artifacts.manifest import Manifest
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.lifecycle.golden import parse_golden, read_golden, write_golden
from modelyard.lifecycle.observed import (
    Classified,
    Embedded,
    Generated,
    NotFinite,
    Observed,
    Ranked,
)
from modelyard.lifecycle.questions import DEFAULTS, read_questions
from modelyard.lifecycle.record import golden_of
from modelyard.lifecycle.self_test import compare
from modelyard.testing.manifests import a_manifest

ANSWERS: dict[Kind, Observed] = {
    Kind.GENERATOR: Generated((1, 2), (7, 8), "so", ({7: -0.5, 9: -1.0}, {8: -0.25})),
    Kind.EMBEDDER: Embedded((1, 2), (0.6, 0.8)),
    Kind.CLASSIFIER: Classified((1, 2), {"yes": 0.75, "no": 0.25}),
    Kind.RERANKER: Ranked(((1, 2), (3,)), (0.9, 0.1, 0.2)),
}


def manifest(kind: Kind) -> Manifest:
    return a_manifest(kind=kind)


@pytest.mark.parametrize("kind", Kind)
def test_what_is_recorded_is_read_back_and_answered_right(kind: Kind, tmp_path: Path) -> None:
    questions = DEFAULTS[kind]
    golden = golden_of(manifest(kind), [(question, ANSWERS[kind]) for question in questions])
    write_golden(tmp_path, golden)
    assert read_golden(tmp_path) == golden
    assert [prompt.id for prompt in golden.prompts] == [question.id for question in questions]
    assert [compare(prompt, ANSWERS[kind]) for prompt in golden.prompts] == [None] * len(questions)


def test_the_same_record_has_the_same_bytes(tmp_path: Path) -> None:
    golden = golden_of(
        manifest(Kind.EMBEDDER), [(DEFAULTS[Kind.EMBEDDER][0], ANSWERS[Kind.EMBEDDER])]
    )
    write_golden(tmp_path, golden)
    first = (tmp_path / "golden.json").read_bytes()
    write_golden(tmp_path, read_golden(tmp_path))
    assert (tmp_path / "golden.json").read_bytes() == first


@pytest.mark.parametrize("bad", [Embedded((1,), (math.nan, 1.0)), NotFinite("no numbers")])
def test_an_answer_without_numbers_is_never_recorded(bad: Observed) -> None:
    with pytest.raises(ArtifactError, match="computes no finite numbers for the prompt short"):
        golden_of(manifest(Kind.EMBEDDER), [(DEFAULTS[Kind.EMBEDDER][0], bad)])


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"golden\.json: No such file.*fetch the model again"):
        read_golden(tmp_path)


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"kind": "embedder", "prompts": []}', "prompts"),
        ('{"kind": "embedder", "prompts": [{"id": "a", "text": "x"}]}', "prompts.0.token_ids"),
        ('{"kind": "oracle", "prompts": []}', "golden"),
        (
            '{"kind": "embedder", "more": 1, "prompts": [{"id": "a", "text": "x", '
            '"token_ids": [1], "expected": [1]}]}',
            "more",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_its_field(text: str, field: str) -> None:
    with pytest.raises(ArtifactError, match=field):
        parse_golden(text.encode(), "golden.json")


def test_logprobs_must_be_as_many_as_tokens() -> None:
    text = (
        '{"kind": "generator", "prompts": [{"id": "a", "messages": [{"role": "user", "content": '
        '"x"}], "prompt_token_ids": [1], "expected_token_ids": [1, 2], "expected_text": "x", '
        '"logprobs": [-1.0]}]}'
    )
    with pytest.raises(ArtifactError, match="logprobs must hold one number for each"):
        parse_golden(text.encode(), "golden.json")


def test_questions_of_ones_own_are_read(tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    path.write_text('[{"id": "a", "text": "hello"}]')
    assert [question.id for question in read_questions(path, Kind.EMBEDDER)] == ["a"]


@pytest.mark.parametrize("text", ["[]", '[{"id": "a"}]', '[{"id": "a b", "text": "x"}]', "no"])
def test_wrong_questions_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "prompts.json"
    path.write_text(text)
    with pytest.raises(ArtifactError, match=r"prompts\.json"):
        read_questions(path, Kind.EMBEDDER)


GOLDEN = (
    '{"kind": "embedder", "prompts": [{"id": "a", "text": "x", "token_ids": [1], '
    '"expected": [1], "min_cosine": 0.9}]}'
)


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ('[1], "exp', '[true], "exp', "token_ids.0"),
        ('[1], "exp', '[1.0], "exp', "token_ids.0"),
        ('"expected": [1]', '"expected": ["1"]', "expected.0"),
        ('"expected": [1]', '"expected": [NaN]', "expected.0"),
        ("0.9", "NaN", "min_cosine"),
        ('"id": "a"', '"id": "a", "id": "b"', "the key 'id' twice"),
    ],
)
def test_a_value_of_another_type_is_refused(right: str, wrong: str, words: str) -> None:
    parse_golden(GOLDEN.encode(), "x.json")
    assert GOLDEN.count(right) == 1
    with pytest.raises(ArtifactError, match=rf"x\.json: .*{words}.*record it again"):
        parse_golden(GOLDEN.replace(right, wrong).encode(), "x.json")
