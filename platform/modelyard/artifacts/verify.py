"""Is a folder exactly what its manifest says? Asked before any weight is loaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from modelyard.artifacts.advice import fetch_again
from modelyard.artifacts.manifest import GOLDEN_NAME, MANIFEST_NAME, Manifest
from modelyard.contract.errors import ArtifactError

# Loading one of these runs code of whoever wrote it: refused by name, listed or not.
PICKLE_SUFFIXES: Final = frozenset(
    {".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".h5"}
)
CODE_SUFFIXES: Final = frozenset({".py", ".pyc", ".so"})
WEIGHT_SUFFIXES: Final = PICKLE_SUFFIXES | {".safetensors", ".gguf", ".onnx", ".msgpack", ".npz"}
# generation_config.json, adapter_config.json, a template: put beside a model, they change answers.
SETTINGS_SUFFIXES: Final = frozenset({".json", ".jinja", ".model"})
# Known answers are written before the folder is packaged again; until then nobody reads them.
_UNLISTED: Final = frozenset({MANIFEST_NAME, GOLDEN_NAME})
_CHUNK_BYTES: Final = 1 << 20
_HASHED_AT_ONCE: Final = 4


class Damaged(ArtifactError):
    """A file's size or sha256 is another than the manifest's: no matter of permissions, of a
    disk that does not answer, or of a file that lies there too much."""


def verify(folder: Path, manifest: Manifest, *, hashes: bool = True) -> None:
    """Raise ArtifactError, naming the file, what was expected and what is there.

    Every listed file must be present with its size and (unless `hashes` is False) its sha256, and
    no weights or settings may lie in the folder that are not listed: a loader that globs would
    take them. It is a Damaged where a size or sha256 differs. Reads four files at a time in chunks
    of 1 MiB.
    """
    listed = {file.path for file in manifest.files}
    found = files_under(folder) | listed
    refuse_code(folder, found)
    for path in sorted(found - listed - _UNLISTED):
        suffix = Path(path).suffix.lower()
        if suffix in WEIGHT_SUFFIXES | SETTINGS_SUFFIXES:
            what = "weights" if suffix in WEIGHT_SUFFIXES else "settings"
            raise ArtifactError(
                f"{folder / path}: {what} that the manifest of {manifest.full_name} does not "
                "list: remove the file, or import the folder again as a new version"
            )
    there = [folder / file.path for file in manifest.files]
    for where, file in zip(there, manifest.files, strict=True):
        _expect(where, "bytes", file.size_bytes, size_of(where))
    if hashes:
        for where, file, got in zip(there, manifest.files, sha256_of_each(there), strict=True):
            _expect(where, "sha256", file.sha256, got)


def refuse_code(folder: Path, paths: Iterable[str]) -> None:
    """Raise ArtifactError naming the first file that could run code when the model is loaded."""
    for path in sorted(paths):
        suffix = Path(path).suffix.lower()
        if suffix in PICKLE_SUFFIXES:
            raise ArtifactError(
                f"{folder / path}: {suffix} weights can run code when they are loaded: "
                "convert them to safetensors and remove this file"
            )
        if suffix in CODE_SUFFIXES:
            raise ArtifactError(
                f"{folder / path}: {suffix} files are code that could run when the model is "
                "loaded: remove it, and serve a model that the engine knows by itself"
            )


def _expect(path: Path, what: str, expected: int | str, got: int | str) -> None:
    if expected != got:
        raise Damaged(
            f"{path}: expected {what} {expected}, got {got}: the file was changed or cut short, "
            f"{fetch_again(path)}"
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


def sha256_of_each(paths: Sequence[Path]) -> list[str]:
    """Hex digests in the order of `paths`. On threads: hashing lets go of the interpreter, and one
    core reads no more than 1 GB/s or so of a large model's shards."""
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        return list(pool.map(sha256_of, paths))


def _unreadable(path: Path, error: OSError) -> ArtifactError:
    return ArtifactError(
        f"{path}: expected a readable file, got {error.strerror}: {fetch_again(path)}"
    )
