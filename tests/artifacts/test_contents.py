"""Files that are whole but do not fit: each is stopped by name, whatever digests say."""

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tokenizers import AddedToken, Tokenizer

from modelyard.artifacts.contents import verify_contents
from modelyard.artifacts.manifest import File, Manifest
from modelyard.artifacts.package import write_manifest
from modelyard.artifacts.verify import sha256_of, size_of, verify
from modelyard.artifacts.weights import weights_digest
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import an_identity
from modelyard.testing.tiny_model import write_tiny_model
from modelyard.testing.tiny_weights import ROWS


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    write_tiny_model(folder, kind=Kind.GENERATOR)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "copy"))


def relisted(folder: Path, manifest: Manifest) -> Manifest:
    """The manifest of somebody who changed a file and then wrote its new digests down."""
    files = tuple(
        File(path=file.path, size_bytes=size_of(folder / file.path), sha256=sha256_of(path))
        for file in manifest.files
        if (path := folder / file.path).exists()
    )
    size = sum(file.size_bytes for file in files if file.path.endswith(".safetensors"))
    facts = {"sha256": weights_digest(files), "size_bytes": size}
    weights = manifest.weights.model_copy(update=facts)
    digest = next(file.sha256 for file in files if file.path == "tokenizer.json")
    tokenizer = manifest.tokenizer.model_copy(update={"sha256": digest})
    changes = {"files": files, "weights": weights, "tokenizer": tokenizer}
    changed = manifest.model_copy(update=changes)
    verify(folder, changed)
    return changed


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def swap_the_tokenizer(folder: Path) -> None:
    """For one whose words have ids that the embeddings have no row for."""
    path = folder / "tokenizer.json"
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.add_tokens([AddedToken(f"word{number}") for number in range(10)])
    tokenizer.save(str(path))


def store_as_float16(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file({name: value.astype(np.float16) for name, value in load_file(path).items()}, path)


def rename_the_embeddings(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file(
        {name.replace("embed", "embod"): value for name, value in load_file(path).items()}, path
    )


def remove_embedding_rows(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["model.embed_tokens.weight"] = tensors["model.embed_tokens.weight"][:200].copy()
    save_file(tensors, path)
    edit(folder / "config.json", vocab_size=200)


CORRUPTIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a swapped tokenizer": (
        swap_the_tokenizer,
        r"tokenizer\.json: tokenizer\.vocab_size: expected 261, got 271",
    ),
    "a changed template": (
        lambda folder: (folder / "chat_template.jinja").write_text("{{ messages }}"),
        r"chat_template\.jinja: tokenizer\.chat_template_sha256: expected [0-9a-f]{64}, got ",
    ),
    "a template that went away": (
        lambda folder: (folder / "chat_template.jinja").unlink(),
        r"tokenizer_config\.json: tokenizer\.chat_template_sha256: expected [0-9a-f]{64}, got None",
    ),
    "another dtype": (store_as_float16, r"weights\.dtype: expected float32, got float16"),
    "fewer embeddings than tokens": (
        remove_embedding_rows,
        r"tokenizer\.json: expected token ids below 200, the rows of 'model\.embed_tokens\.weight',"
        r" got 260",
    ),
    "a config with another vocabulary": (
        lambda folder: edit(folder / "config.json", vocab_size=ROWS + 1),
        rf"config\.json: vocab_size: expected {ROWS}, the rows of .*, got {ROWS + 1}",
    ),
    "no embeddings": (rename_the_embeddings, "expected token embeddings in the weights"),
    "weights cut short": (
        lambda folder: (folder / "model.safetensors").write_bytes(
            (folder / "model.safetensors").read_bytes()[:-1]
        ),
        r"model\.safetensors: expected a whole safetensors file",
    ),
    "weights of another format": (
        lambda folder: (folder / "model.safetensors").write_bytes(b"GGUF" * 9),
        r"model\.safetensors: expected a whole safetensors file",
    ),
    "a shorter context": (
        lambda folder: edit(folder / "config.json", max_position_embeddings=256),
        r"config\.json: limits\.max_context_tokens: expected at most 256, .* got 512",
    ),
    "more layers than memory": (
        lambda folder: edit(folder / "config.json", num_hidden_layers=10**6),
        r"manifest\.json: device\.min_memory_gb: expected at least \d+\.\d+ \(weights",
    ),
    "quantised all at once": (
        lambda folder: edit(folder / "config.json", quantization_config={"bits": 4}),
        r"weights\.dtype: expected float32, got quantized",
    ),
    "remote code of the model": (
        lambda folder: edit(folder / "config.json", auto_map={"AutoModel": "hub/x--m.Model"}),
        r"config\.json: auto_map: expected none, got .*hub/x--m\.Model.*it names code that runs",
    ),
    "remote code of the tokenizer": (
        lambda folder: edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["t.T"]}),
        r"tokenizer_config\.json: auto_map: expected none",
    ),
    "a config that is no JSON": (
        lambda folder: (folder / "config.json").write_text("{"),
        r"config\.json: expected JSON, got ",
    ),
    "a config that is a list": (
        lambda folder: (folder / "config.json").write_text("[]"),
        r"config\.json: expected a JSON object, got list",
    ),
    "a config without sizes": (
        lambda folder: (folder / "config.json").write_text("{}"),
        r"config\.json: vocab_size: expected a positive integer, got nothing",
    ),
    "a config with a size in words": (
        lambda folder: edit(folder / "config.json", num_hidden_layers="one"),
        r"config\.json: num_hidden_layers: expected a positive integer, got 'one'",
    ),
    "no config": (
        lambda folder: (folder / "config.json").unlink(),
        r"config\.json: expected a readable file, got No such file",
    ),
    "a tokenizer that is none": (
        lambda folder: (folder / "tokenizer.json").write_text("{}"),
        r"tokenizer\.json: expected a tokenizer, got ",
    ),
    "a template that is no text": (
        lambda folder: (folder / "chat_template.jinja").write_bytes(b"\xff"),
        r"chat_template\.jinja: expected a template, got ",
    ),
}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_what_does_not_fit_is_stopped_under_recomputed_digests(name: str, folder: Path) -> None:
    corrupt, words = CORRUPTIONS[name]
    manifest = write_manifest(folder, an_identity(kind=Kind.GENERATOR))
    corrupt(folder)
    with pytest.raises(ArtifactError, match=words):
        verify_contents(folder, relisted(folder, manifest))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_what_does_not_fit_is_stopped_by_its_bytes_too(name: str, folder: Path) -> None:
    """Without new digests the phase before says so; only remote code needs no digest at all."""
    manifest = write_manifest(folder, an_identity(kind=Kind.GENERATOR))
    CORRUPTIONS[name][0](folder)
    with pytest.raises(ArtifactError, match=r"expected (bytes|sha256|a readable file)"):
        verify(folder, manifest)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("weights.dtype", "bfloat16"),
        ("weights.size_bytes", 1),
        ("weights.sha256", "0" * 64),
        ("tokenizer.sha256", "0" * 64),
        ("tokenizer.vocab_size", 7),
        ("tokenizer.chat_template_sha256", None),
        ("warmup.golden_sha256", "0" * 64),
    ],
)
def test_a_fact_of_the_manifest_that_is_not_the_folders_is_named(
    folder: Path, field: str, value: object
) -> None:
    manifest = write_manifest(folder, an_identity(kind=Kind.GENERATOR))
    part, name = field.split(".")
    changed = getattr(manifest, part).model_copy(update={name: value})
    with pytest.raises(ArtifactError, match=rf"{field}: expected {value}, got "):
        verify_contents(folder, manifest.model_copy(update={part: changed}))


def test_labels_in_another_order_are_told_apart(tmp_path: Path) -> None:
    manifest = write_tiny_model(tmp_path, kind=Kind.CLASSIFIER, labels=("no", "yes"))
    turned = manifest.model_copy(update={"labels": ("yes", "no")})
    words = r"config\.json: id2label: expected \['yes', 'no'\], .* got \['no', 'yes'\]"
    with pytest.raises(ArtifactError, match=words):
        verify_contents(tmp_path, turned)


def test_rows_of_padding_above_the_vocabulary_are_fine(folder: Path) -> None:
    manifest = write_manifest(folder, an_identity(kind=Kind.GENERATOR))
    assert manifest.tokenizer.vocab_size < ROWS
    verify_contents(folder, manifest)


def test_quantised_weights_are_named_so(folder: Path) -> None:
    edit(folder / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
    assert write_manifest(folder, an_identity(kind=Kind.GENERATOR)).weights.dtype == "quantized"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_weights_with_any_damage_in_their_header_are_refused_in_words_or_still_fit(
    data: st.DataObject, folder: Path
) -> None:
    """Never a traceback: the phase Verifying ends in a sentence, or the change is of no account."""
    manifest = write_manifest(folder, an_identity(kind=Kind.GENERATOR))
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    place = data.draw(st.integers(0, header - 1))
    damaged = bytearray(whole)
    damaged[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    changed = relisted(folder, manifest)
    try:
        with suppress(ArtifactError):
            verify_contents(folder, changed)
    finally:
        path.write_bytes(whole)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_weights_cut_anywhere_are_refused_in_words(data: st.DataObject, folder: Path) -> None:
    manifest = write_manifest(folder, an_identity(kind=Kind.GENERATOR))
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    try:
        with pytest.raises(ArtifactError, match="expected a whole safetensors file"):
            verify_contents(folder, relisted(folder, manifest))
    finally:
        path.write_bytes(whole)
