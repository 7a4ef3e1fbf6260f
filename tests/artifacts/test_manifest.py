from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.artifacts.advice import STARTER_NAMES
from modelyard.artifacts.manifest import (
    MANIFEST_BYTES,
    MANIFEST_FILES,
    Device,
    File,
    Identity,
    Limits,
    Manifest,
    Runtime,
    parse_manifest,
    read_manifest,
)
from modelyard.artifacts.starter.prepare import RECIPES
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest

_SHA = "0" * 64


@pytest.mark.parametrize("path", ["../x", "a/../x", ".", "a/./b", "/etc/passwd", "a//b", ""])
def test_a_path_cannot_lead_out_of_the_folder(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        File(path=path, size_bytes=1, sha256=_SHA)


def test_a_file_is_listed_once() -> None:
    one = File(path="a.txt", size_bytes=1, sha256=_SHA)
    with pytest.raises(ValueError, match=r"'a.txt' twice"):
        a_manifest(files=(one, one))


def test_the_manifest_does_not_list_itself() -> None:
    with pytest.raises(ValueError, match=r"manifest\.json"):
        a_manifest(files=(File(path="manifest.json", size_bytes=1, sha256=_SHA),))


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_the_digest_changes_exactly_when_the_content_does(a: int, b: int) -> None:
    left = a_manifest(files=(File(path="w.safetensors", size_bytes=a, sha256=_SHA),)).digest()
    right = a_manifest(files=(File(path="w.safetensors", size_bytes=b, sha256=_SHA),)).digest()
    assert (left == right) == (a == b)


# What an operator compares and a caller sees: each field of the list is in the identity.
CHANGES: dict[str, Any] = {
    "name": "other",
    "version": "1.0.1",
    "license": "MIT",
    "source": "elsewhere",
    "limits": Limits(max_context_tokens=8, drain_s=1),
    "runtime": Runtime(engine="torch", dtype="float32"),
    "device": Device(accelerators=1, min_memory_gb=4),
    "eval": {"suite": "qa-7", "passed_at": "2026-10-20T09:14:00Z"},
    "embedding_space": "other",
    "measured": {"accuracy": 0.5},
    "recipe": "1" * 64,
    "weights": {"dtype": "float16", "size_bytes": 1, "sha256": _SHA},
    "tokenizer": {"sha256": _SHA, "vocab_size": 2},
    "warmup": {"prompts": ["short"]},
    "files": (File(path="a", size_bytes=1, sha256=_SHA),),
}


@pytest.mark.parametrize("field", CHANGES)
def test_every_field_is_part_of_the_identity(field: str) -> None:
    assert a_manifest(**{field: CHANGES[field]}).digest() != a_manifest().digest()


def test_no_field_was_left_out_of_the_last_test() -> None:
    of_other_kinds = {"kind", "schema_", "score_kind", "labels"}
    assert Manifest.model_fields.keys() == CHANGES.keys() | of_other_kinds


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"runtime": Runtime(engine="vllm")}, "embedders run on torch"),
        ({"score_kind": "bi-encoder"}, "score_kind is for rerankers"),
        ({"labels": ("a",)}, "labels is for classifiers"),
        ({"kind": Kind.RERANKER, "embedding_space": "x"}, "embedding_space is for embedders"),
        (
            {"kind": Kind.GENERATOR, "limits": Limits(max_context_tokens=8, drain_s=1)},
            r"needs limits\.max_output_tokens",
        ),
        ({"toaster": 1}, "toaster"),
        ({"eval": {"suite": "x", "passed_at": "2026-10-20T09:14:00"}}, "timezone"),
    ],
)
def test_a_field_that_does_not_fit_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        a_manifest(**changes)


@pytest.mark.parametrize(
    ("field", "value"),
    [("version", "=>0.3"), ("image", "registry.example.com/llm:latest"), ("engine", "onnx")],
)
def test_a_runtime_that_cannot_be_compared_is_refused(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=field):
        Runtime.model_validate({"engine": "torch", field: value})


def test_an_identity_does_not_speak_of_files() -> None:
    assert Manifest.model_fields.keys() - Identity.model_fields.keys() == {
        "weights",
        "tokenizer",
        "warmup",
        "files",
    }


@pytest.mark.parametrize(
    ("folder", "words", "not_words"),
    [
        ("there", r"there: is not a packaged version .*`modelyard models import`", "prepare"),
        ("nowhere", "nowhere: no such folder: check the path, or put", "prepare"),
        (
            "support-intent/1.0.0",
            r"`modelyard models prepare` makes the starter models, `modelyard models import` one",
            "put a version there",
        ),
    ],
)
def test_a_missing_manifest_says_what_makes_it(
    tmp_path: Path, folder: str, words: str, not_words: str
) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(ArtifactError, match=words) as raised:
        read_manifest(tmp_path / folder)
    assert not_words not in str(raised.value)


def test_the_names_of_the_starter_models_are_their_recipes() -> None:
    assert {recipe.name for recipe in RECIPES} == STARTER_NAMES


def test_a_wrong_field_is_named(tmp_path: Path) -> None:
    text = a_manifest().model_dump_json(by_alias=True).replace('"embedder"', '"toaster"')
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"manifest\.json: kind: "):
        read_manifest(tmp_path)


@given(st.binary(max_size=64))
def test_a_manifest_of_any_bytes_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"x\.json: "):
        parse_manifest(data, "x.json")


def written(**changes: Any) -> str:
    return a_manifest(**changes).model_dump_json(by_alias=True, exclude_none=True)


@pytest.mark.parametrize("kind", Kind)
def test_what_is_written_is_read_back_the_same(kind: Kind) -> None:
    manifest = a_manifest(
        kind=kind,
        eval={"suite": "qa-7", "passed_at": "2026-10-20T09:14:00Z", "results": {"f1": 1}},
        warmup={"prompts": ["short"]},
    )
    text = manifest.model_dump_json(by_alias=True, exclude_none=True)
    assert parse_manifest(text.encode(), "x") == manifest


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ('"max_context_tokens":512', '"max_context_tokens":"512"', "limits.max_context_tokens"),
        ('"max_context_tokens":512', '"max_context_tokens":512.0', "limits.max_context_tokens"),
        ('"accelerators":0', '"accelerators":false', "device.accelerators"),
        ('"drain_s":30.0', '"drain_s":"30"', "limits.drain_s"),
        ('"measured":{}', '"measured":{"accuracy":NaN}', "measured.accuracy"),
        ('"measured":{}', '"measured":{"accuracy":1e999}', "measured.accuracy"),
        ('"measured":{}', '"measured":{"accuracy":true}', "measured.accuracy"),
        ('"license":', '"license":"MIT","license":', "the key 'license' twice"),
        ('"drain_s":', '"drain_s":1,"drain_s":', "the key 'drain_s' twice"),
    ],
)
def test_a_field_of_another_type_than_it_has_is_refused(right: str, wrong: str, words: str) -> None:
    text = written()
    assert text.count(right) == 1
    parse_manifest(text.encode(), "x.json")
    with pytest.raises(ArtifactError, match=rf"x\.json: .*{words}.*import the folder again"):
        parse_manifest(text.replace(right, wrong).encode(), "x.json")


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_refused(figure: float) -> None:
    with pytest.raises(ValueError, match="finite number"):
        a_manifest(measured={"accuracy": figure})
    with pytest.raises(ValueError, match="finite number"):
        a_manifest(
            eval={"suite": "x", "passed_at": "2026-10-20T09:14:00Z", "results": {"f1": figure}}
        )


def files(count: int) -> tuple[File, ...]:
    return tuple(File(path=f"f{n}", size_bytes=1, sha256=_SHA) for n in range(count))


def test_a_manifest_lists_no_more_files_than_it_may() -> None:
    most = written(files=files(MANIFEST_FILES))
    assert len(parse_manifest(most.encode(), "x").files) == MANIFEST_FILES
    one_more = most[:-2] + ',{"path":"more","size_bytes":1,"sha256":"' + _SHA + '"}]}'
    with pytest.raises(ArtifactError, match=r"files: .* at most 10000 items"):
        parse_manifest(one_more.encode(), "x")


def test_a_file_that_is_too_large_for_a_manifest_is_not_read(tmp_path: Path) -> None:
    data = written().encode() + b" " * MANIFEST_BYTES
    said = "expected at most 4194304 bytes, got more"
    with pytest.raises(ArtifactError, match=f"x.json: {said}"):
        parse_manifest(data, "x.json")
    (tmp_path / "manifest.json").write_bytes(data)
    with pytest.raises(ArtifactError, match=rf"manifest\.json: {said}"):
        read_manifest(tmp_path)


def test_a_manifest_that_may_not_be_read_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(ArtifactError, match=r"cannot be read: Is a directory") as refused:
        read_manifest(tmp_path)
    assert "prepare" not in str(refused.value)
