"""Make a folder into an artifact: read what is in it, check it, and write the manifest."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from modelyard.artifacts.contents import verify_contents
from modelyard.artifacts.finite import require_finite
from modelyard.artifacts.json_file import require_bounded
from modelyard.artifacts.manifest import (
    GOLDEN_NAME,
    MANIFEST_BYTES,
    MANIFEST_FILES,
    MANIFEST_NAME,
    File,
    Identity,
    Manifest,
    Tokenizer,
    WarmPrompt,
    Warmup,
    Weights,
)
from modelyard.artifacts.model_config import read_model_config
from modelyard.artifacts.tokenizer_files import TOKENIZER_NAME, read_vocabulary, template_digest
from modelyard.artifacts.verify import files_under, refuse_code, sha256_of_each, size_of, verify
from modelyard.artifacts.weights import read_tensors, stored_dtype, weight_paths, weights_digest
from modelyard.contract.errors import ArtifactError

# A suffix that nobody reads: a folder in which it was left is not refused for it.
_UNDER_WAY: Final = f".{MANIFEST_NAME}-new"


def write_manifest(
    folder: Path, identity: Identity, warm_prompts: Sequence[WarmPrompt] | None = None
) -> Manifest:
    """The identity with what the folder holds, written as `folder`/manifest.json.

    warm_prompts: what to run before a replica is ready; None leaves the default. The same content
    always gives the same bytes: files and keys are sorted and there is no time in it. Raises
    ArtifactError, naming the file and the field, for whatever would be refused at load, for a file
    name that a manifest cannot hold, and for a weight that is NaN or infinite.
    """
    (folder / _UNDER_WAY).unlink(missing_ok=True)  # of one that was killed
    refuse_code(folder, files_under(folder))
    files = _files(folder)
    manifest = _manifest(folder, identity, files, _warmup(files, warm_prompts))
    verify(folder, manifest, hashes=False)
    verify_contents(folder, manifest)
    require_finite(folder, weight_paths(file.path for file in files))
    text = json.dumps(
        manifest.model_dump(mode="json", by_alias=True, exclude_none=True), sort_keys=True, indent=2
    )
    _write(folder, (text + "\n").encode())
    return manifest


def _write(folder: Path, data: bytes) -> None:
    """Whole or not at all: a half-written manifest would make a good folder one that is refused."""
    require_bounded(len(data), MANIFEST_BYTES, str(folder / MANIFEST_NAME))
    with (folder / _UNDER_WAY).open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(folder / _UNDER_WAY, folder / MANIFEST_NAME)


def _files(folder: Path) -> tuple[File, ...]:
    paths = sorted(files_under(folder) - {MANIFEST_NAME})
    if len(paths) > MANIFEST_FILES:
        raise ArtifactError(
            f"{folder}: holds {len(paths)} files, and a manifest lists at most {MANIFEST_FILES}: "
            "remove those that are not the model's"
        )
    digests = sha256_of_each([folder / path for path in paths])
    return tuple(_file(folder, path, sha256) for path, sha256 in zip(paths, digests, strict=True))


def _file(folder: Path, path: str, sha256: str) -> File:
    try:
        return File(path=path, size_bytes=size_of(folder / path), sha256=sha256)
    except ValidationError as error:
        message = error.errors(include_url=False)[0]["msg"]
        raise ArtifactError(
            f"{folder}: {path!r} cannot be in a manifest: {message}: rename it"
        ) from error


def _warmup(files: Sequence[File], prompts: Sequence[WarmPrompt] | None) -> Warmup:
    golden = {file.path: file.sha256 for file in files}.get(GOLDEN_NAME)
    if prompts is None:
        return Warmup(golden_sha256=golden)
    return Warmup(prompts=tuple(prompts), golden_sha256=golden)


def _manifest(
    folder: Path, identity: Identity, files: tuple[File, ...], warmup: Warmup
) -> Manifest:
    record: dict[str, Any] = {
        name: getattr(identity, name) for name in Identity.model_fields if name != "schema_"
    }
    weights, tokenizer = _weights(folder, files), _tokenizer(folder, files)
    return Manifest(weights=weights, tokenizer=tokenizer, warmup=warmup, files=files, **record)


def _weights(folder: Path, files: Sequence[File]) -> Weights:
    paths = weight_paths(file.path for file in files)
    tensors = read_tensors(folder, paths)
    quantised = read_model_config(folder).quantised
    return Weights(
        dtype=stored_dtype(tensors.values(), quantised=quantised, where=folder),
        size_bytes=sum(file.size_bytes for file in files if file.path in paths),
        sha256=weights_digest(files),
    )


def _tokenizer(folder: Path, files: Sequence[File]) -> Tokenizer:
    vocabulary = read_vocabulary(folder)
    digest = {file.path: file.sha256 for file in files}[TOKENIZER_NAME]
    return Tokenizer(
        sha256=digest,
        vocab_size=vocabulary.size,
        chat_template_sha256=template_digest(folder),
    )
