from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelyard.artifacts.manifest import (
    Device,
    File,
    Identity,
    Limits,
    Manifest,
    Runtime,
    parse_manifest,
    read_manifest,
)
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


def test_a_missing_manifest_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="models prepare"):
        read_manifest(tmp_path)


def test_a_wrong_field_is_named(tmp_path: Path) -> None:
    text = a_manifest().model_dump_json(by_alias=True).replace('"embedder"', '"toaster"')
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ArtifactError, match=r"manifest\.json: kind: "):
        read_manifest(tmp_path)


@given(st.binary(max_size=64))
def test_a_manifest_of_any_bytes_is_refused_in_words(data: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"x\.json: "):
        parse_manifest(data, "x.json")
