"""Is a folder exactly what its manifest says? Asked before any weight is loaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from modelyard.artifacts.manifest import Manifest
from modelyard.contract.errors import ArtifactError

# Loading one of these runs code of whoever wrote it: refused by name, listed or not.
PICKLE_SUFFIXES: Final = frozenset(
    {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".h5"}
)
WEIGHT_SUFFIXES: Final = PICKLE_SUFFIXES | {".safetensors", ".gguf", ".onnx", ".msgpack", ".npz"}
_CHUNK_BYTES: Final = 1 << 20


def verify(folder: Path, manifest: Manifest, *, hashes: bool = True) -> None:
    """Raise ArtifactError, naming the file, what was expected and what is there.

    Every listed file must be present with its size and (unless `hashes` is False) its sha256, and
    no weights may lie in the folder that are not listed: a loader that globs would take them.
    Reads one file at a time in chunks of 1 MiB.
    """
    listed = {file.path for file in manifest.files}
    for path in sorted(files_under(folder) | listed):
        suffix = Path(path).suffix.lower()
        if suffix in PICKLE_SUFFIXES:
            raise ArtifactError(
                f"{folder / path}: {suffix} weights can run code when they are loaded: "
                "convert them to safetensors and remove this file"
            )
        if suffix in WEIGHT_SUFFIXES and path not in listed:
            raise ArtifactError(
                f"{folder / path}: weights that the manifest of {manifest.full_name} does not "
                "list: remove the file, or package the folder again as a new version"
            )
    for file in manifest.files:
        _expect(folder / file.path, "bytes", file.size_bytes, size_of(folder / file.path))
        if hashes:
            _expect(folder / file.path, "sha256", file.sha256, sha256_of(folder / file.path))


def _expect(path: Path, what: str, expected: int | str, got: int | str) -> None:
    if expected != got:
        raise ArtifactError(
            f"{path}: expected {what} {expected}, got {got}: the file was changed or cut short, "
            "fetch the model again, or run `modelyard models prepare --verify`"
        )


def files_under(folder: Path) -> set[str]:
    """Every file below a folder, as relative posix paths. Follows no links to folders."""
    return {path.relative_to(folder).as_posix() for path in _walk(folder)}


def _walk(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield Path(parent, name)


def size_of(path: Path) -> int:
    """Bytes. Raises ArtifactError when the file is missing."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise _unreadable(path, error) from error


def sha256_of(path: Path) -> str:
    """Hex digest, read in chunks so that a 100 GB file needs 1 MiB of memory."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise _unreadable(path, error) from error
    return digest.hexdigest()


def _unreadable(path: Path, error: OSError) -> ArtifactError:
    return ArtifactError(
        f"{path}: expected a readable file, got {error.strerror}: "
        "fetch the model again, or run `modelyard models prepare --verify`"
    )
