"""What a folder must be to become an artifact, and what its manifest then says of it."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from modelyard.artifacts.manifest import Device, Limits, Manifest, read_manifest
from modelyard.artifacts.package import write_manifest
from modelyard.artifacts.verify import CODE_SUFFIXES, PICKLE_SUFFIXES, verify
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import an_identity
from modelyard.testing.tiny_model import TEMPLATE, write_tiny_files, write_tiny_model
from modelyard.testing.tiny_weights import ROWS

IDENTITY = an_identity()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tiny_files(tmp_path, IDENTITY)
    return tmp_path


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", Kind)
def test_a_packaged_folder_verifies_and_reads_back(kind: Kind, tmp_path: Path) -> None:
    manifest = write_tiny_model(tmp_path, kind=kind)
    assert read_manifest(tmp_path) == manifest
    verify(tmp_path, manifest)


def test_the_facts_are_those_of_the_files(tmp_path: Path) -> None:
    manifest = write_tiny_model(tmp_path, kind=Kind.GENERATOR)
    weights = tmp_path / "model.safetensors"
    pipe = f"cd {tmp_path} && sha256sum *.safetensors | sha256sum"
    printed = subprocess.run(pipe, shell=True, capture_output=True, text=True, check=True).stdout
    assert manifest.weights.sha256 == printed.split()[0]
    assert manifest.weights.size_bytes == weights.stat().st_size
    assert manifest.weights.dtype == "float32"
    assert manifest.tokenizer.sha256 == sha256(tmp_path / "tokenizer.json")
    assert manifest.tokenizer.vocab_size == 261 < ROWS
    template = hashlib.sha256(TEMPLATE.encode()).hexdigest()
    assert manifest.tokenizer.chat_template_sha256 == template
    assert [file.path for file in manifest.files] == [
        "chat_template.jinja",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_a_template_in_the_tokenizers_config_has_the_same_digest(tmp_path: Path) -> None:
    as_file = write_tiny_model(tmp_path, kind=Kind.GENERATOR)
    (tmp_path / "chat_template.jinja").unlink()
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": TEMPLATE}))
    in_config = write_manifest(tmp_path, an_identity(kind=Kind.GENERATOR))
    assert in_config.tokenizer.chat_template_sha256 == as_file.tokenizer.chat_template_sha256


def test_packaging_twice_writes_the_same_bytes(folder: Path) -> None:
    write_manifest(folder, IDENTITY)
    first = (folder / "manifest.json").read_bytes()
    write_manifest(folder, IDENTITY)
    assert (folder / "manifest.json").read_bytes() == first


def test_known_answers_in_the_folder_are_named_by_their_digest(folder: Path) -> None:
    assert write_manifest(folder, IDENTITY).warmup.golden_sha256 is None
    (folder / "golden.json").write_text("{}")
    manifest = write_manifest(folder, IDENTITY, ["short"])
    assert manifest.warmup.golden_sha256 == sha256(folder / "golden.json")
    assert manifest.warmup.prompts == ("short",)


@pytest.mark.parametrize("suffix", sorted(PICKLE_SUFFIXES | CODE_SUFFIXES))
def test_what_could_run_code_is_never_packaged(folder: Path, suffix: str) -> None:
    (folder / f"model{suffix}").write_bytes(b"x")
    with pytest.raises(ArtifactError, match=rf"model\{suffix}: .*code"):
        write_manifest(folder, IDENTITY)
    assert not (folder / "manifest.json").exists()


def test_a_name_that_a_manifest_cannot_hold_is_refused(folder: Path) -> None:
    (folder / "my notes.txt").write_text("x")
    with pytest.raises(ArtifactError, match=r"'my notes.txt' cannot be in a manifest.*rename it"):
        write_manifest(folder, IDENTITY)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_no_number_is_never_packaged(folder: Path, value: float) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["pooler.dense.weight"][1, 2] = value
    save_file(tensors, path)
    words = r"'pooler\.dense\.weight': expected finite numbers, got NaN or infinity at element 66 "
    with pytest.raises(ArtifactError, match=words):
        write_manifest(folder, IDENTITY)
    assert not (folder / "manifest.json").exists()


def test_a_need_for_memory_below_the_weights_is_refused_with_the_sum(folder: Path) -> None:
    small = an_identity(device=Device(accelerators=0, min_memory_gb=0.1))
    words = r"device\.min_memory_gb: expected at least 0\.35 \(weights 0\.00 \+ overhead 0\.35 "
    with pytest.raises(ArtifactError, match=words):
        write_manifest(folder, small)


def test_a_context_beyond_the_models_own_is_refused(folder: Path) -> None:
    long = an_identity(limits=Limits(max_context_tokens=513, drain_s=30))
    words = r"limits\.max_context_tokens: expected at most 512, .* got 513: lower it"
    with pytest.raises(ArtifactError, match=words):
        write_manifest(folder, long)


def test_an_answer_as_long_as_the_context_leaves_no_prompt(tmp_path: Path) -> None:
    limits = Limits(max_context_tokens=512, max_output_tokens=512, drain_s=30)
    with pytest.raises(
        ArtifactError, match=r"limits\.max_output_tokens: expected less than the 512"
    ):
        write_tiny_model(tmp_path, kind=Kind.GENERATOR, limits=limits)


def test_an_empty_folder_is_no_artifact(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="expected safetensors weights, got none"):
        write_manifest(tmp_path, IDENTITY)


def test_every_shard_must_be_there(folder: Path) -> None:
    tensors = load_file(folder / "model.safetensors")
    names = dict.fromkeys(tensors, "model.safetensors")
    lost = {"lost.weight": "model-2.safetensors"}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": names}))
    assert isinstance(write_manifest(folder, IDENTITY), Manifest)
    index.write_text(json.dumps({"weight_map": names | lost}))
    words = r"expected tensor 'lost.weight' in model-2\.safetensors, got no such tensor"
    with pytest.raises(ArtifactError, match=words):
        write_manifest(folder, IDENTITY)


def test_one_tensor_in_two_files_is_refused(folder: Path) -> None:
    save_file({"pooler.dense.bias": np.zeros(64, np.float32)}, folder / "z.safetensors")
    with pytest.raises(ArtifactError, match=r"'pooler.dense.bias' is in model.safetensors too"):
        write_manifest(folder, IDENTITY)


def test_a_manifest_is_replaced_whole_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = write_manifest(folder, IDENTITY)

    def killed(source: object, target: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(KeyboardInterrupt):
            write_manifest(folder, an_identity(license="MIT"))
    assert read_manifest(folder) == first
    verify(folder, first)
    # What was left beside it is no file of the version.
    assert write_manifest(folder, IDENTITY) == first


def test_a_folder_of_more_files_than_a_manifest_lists_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("modelyard.artifacts.package.MANIFEST_FILES", 3)
    with pytest.raises(ArtifactError, match=r"holds 4 files, .* lists at most 3: remove those"):
        write_manifest(folder, IDENTITY)


def test_a_templates_digest_is_of_its_bytes(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, kind=Kind.GENERATOR)
    for template in ("ä\n".encode(), "ä\r\n".encode()):
        (tmp_path / "chat_template.jinja").write_bytes(template)
        manifest = write_manifest(tmp_path, an_identity(kind=Kind.GENERATOR))
        expected = hashlib.sha256(template).hexdigest()
        assert manifest.tokenizer.chat_template_sha256 == expected


def test_a_template_is_utf_8_whatever_the_locale(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes("ä".encode())
    program = (
        "import sys; from pathlib import Path; "
        "from modelyard.artifacts.tokenizer_files import template_digest; "
        "print(template_digest(Path(sys.argv[1])))"
    )
    plain = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}
    printed = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", program, str(tmp_path)],
        env=plain,
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == hashlib.sha256("ä".encode()).hexdigest()
