"""Do the files of a folder fit each other, and what its manifest says of them?

`verify` finds bytes that changed. This finds bytes that were never right: a tokenizer of another
model packaged with these weights, or a manifest that was written for other files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from modelyard.artifacts.context import longest_context
from modelyard.artifacts.embeddings import embedding_rows
from modelyard.artifacts.json_file import read_object
from modelyard.artifacts.manifest import GOLDEN_NAME, MANIFEST_NAME, Manifest
from modelyard.artifacts.memory import need_bytes
from modelyard.artifacts.model_config import CONFIG_NAME, ModelConfig, read_model_config
from modelyard.artifacts.tokenizer_files import (
    TEMPLATE_NAME,
    TOKENIZER_CONFIG_NAME,
    TOKENIZER_NAME,
    read_vocabulary,
    template_digest,
)
from modelyard.artifacts.weights import (
    Tensor,
    read_tensors,
    stored_dtype,
    weight_paths,
    weights_digest,
)
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

_CODE_CONFIGS: Final = (CONFIG_NAME, TOKENIZER_CONFIG_NAME, "generation_config.json")
_AGAIN: Final = "import the folder again (`modelyard models import`), or fetch the model again"


def verify_contents(folder: Path, manifest: Manifest) -> None:
    """Raise ArtifactError, naming the file, the field, what was expected and what is there.

    Reads headers and small files only, so it costs the same for 0.1 and 100 GB of weights. What
    each file holds byte for byte is `verify`'s to say.
    """
    refuse_remote_code(folder)
    config = read_model_config(folder)
    paths = weight_paths(file.path for file in manifest.files)
    tensors = read_tensors(folder, paths)
    _verify_weights(folder, manifest, config, tensors)
    _verify_vocabulary(folder, manifest, config, tensors)
    _verify_template(folder, manifest)
    _verify_golden(folder, manifest)
    _verify_labels(config, manifest)
    _verify_context(config, manifest)
    _verify_memory(folder, manifest, config)


def refuse_remote_code(folder: Path) -> None:
    """`auto_map` names Python that transformers would fetch and run."""
    for name in _CODE_CONFIGS:
        path = folder / name
        if path.is_file() and (code := read_object(path).get("auto_map")):
            raise ArtifactError(
                f"{path}: auto_map: expected none, got {code!r}: it names code that runs when the "
                "model is loaded: remove it, and serve a model that the engine knows by itself"
            )


def _verify_weights(
    folder: Path, manifest: Manifest, config: ModelConfig, tensors: Mapping[str, Tensor]
) -> None:
    dtype = stored_dtype(tensors.values(), quantised=config.quantised, where=folder)
    _expect(folder, "weights.dtype", manifest.weights.dtype, dtype)
    sizes = {file.path: file.size_bytes for file in manifest.files}
    size = sum(sizes[path] for path in weight_paths(sizes))
    _expect(folder, "weights.size_bytes", manifest.weights.size_bytes, size)
    _expect(folder, "weights.sha256", manifest.weights.sha256, weights_digest(manifest.files))


def _verify_vocabulary(
    folder: Path, manifest: Manifest, config: ModelConfig, tensors: Mapping[str, Tensor]
) -> None:
    path = folder / TOKENIZER_NAME
    held = {file.path: file.sha256 for file in manifest.files}
    _expect(path, "tokenizer.sha256", manifest.tokenizer.sha256, held.get(TOKENIZER_NAME))
    vocabulary = read_vocabulary(folder)
    _expect(path, "tokenizer.vocab_size", manifest.tokenizer.vocab_size, vocabulary.size)
    name, rows = embedding_rows(folder, tensors)
    if rows != config.vocab_size:
        raise ArtifactError(
            f"{folder / CONFIG_NAME}: vocab_size: expected {rows}, the rows of {name!r}, got "
            f"{config.vocab_size}: the config and the weights are of different models: {_AGAIN}"
        )
    if vocabulary.highest_id >= rows:
        raise ArtifactError(
            f"{path}: expected token ids below {rows}, the rows of {name!r}, got "
            f"{vocabulary.highest_id}: the tokenizer is of another model than the weights: "
            "put the model's own tokenizer there"
        )


def _verify_template(folder: Path, manifest: Manifest) -> None:
    expected, got = manifest.tokenizer.chat_template_sha256, template_digest(folder)
    name = TEMPLATE_NAME if (folder / TEMPLATE_NAME).is_file() else TOKENIZER_CONFIG_NAME
    _expect(folder / name, "tokenizer.chat_template_sha256", expected, got)


def _verify_golden(folder: Path, manifest: Manifest) -> None:
    held = {file.path: file.sha256 for file in manifest.files}
    expected = manifest.warmup.golden_sha256
    _expect(folder / GOLDEN_NAME, "warmup.golden_sha256", expected, held.get(GOLDEN_NAME))


def _verify_labels(config: ModelConfig, manifest: Manifest) -> None:
    """A head's rows have no names in the weights, so labels in another order would go unseen."""
    if manifest.kind is not Kind.CLASSIFIER:
        return
    names: Any = config.record.get("id2label")
    if not isinstance(names, dict):
        return
    got = tuple(str(names.get(str(index))) for index in range(len(names)))
    if got != manifest.labels:
        raise ArtifactError(
            f"{config.path}: id2label: expected {list(manifest.labels)}, the labels of "
            f"{manifest.full_name}, got {list(got)}: give both the same names in the same order"
        )


def _verify_context(config: ModelConfig, manifest: Manifest) -> None:
    longest, declared = longest_context(config), manifest.limits.max_context_tokens
    if longest is not None and declared > longest:
        raise ArtifactError(
            f"{config.path}: limits.max_context_tokens: expected at most {longest}, what the model "
            f"was made for, got {declared}: lower it in the manifest of {manifest.full_name}"
        )
    output = manifest.limits.max_output_tokens
    if output is not None and output >= declared:
        raise ArtifactError(
            f"{config.path.parent / MANIFEST_NAME}: limits.max_output_tokens: expected less than "
            f"the {declared} tokens of prompt and answer together, got {output}: lower it"
        )


def _verify_memory(folder: Path, manifest: Manifest, config: ModelConfig) -> None:
    need = need_bytes(config, manifest, manifest.weights.size_bytes)
    declared = manifest.device.min_memory_gb * 1e9
    if declared < need.total:
        raise ArtifactError(
            f"{folder / MANIFEST_NAME}: device.min_memory_gb: expected at least "
            f"{need.total / 1e9:.2f} ({need}), got {manifest.device.min_memory_gb:g}: raise it, "
            "or lower limits.max_context_tokens"
        )


def _expect(path: Path, field: str, expected: object, got: object) -> None:
    if expected != got:
        raise ArtifactError(f"{path}: {field}: expected {expected}, got {got}: {_AGAIN}")
