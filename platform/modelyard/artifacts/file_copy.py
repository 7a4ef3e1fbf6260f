"""The files of a version in a store that is a folder: put there, looked at, and mended."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Final

from modelyard.artifacts.fsync import fsync_folder, fsync_tree
from modelyard.artifacts.hashing_reader import HashingReader
from modelyard.artifacts.manifest import MANIFEST_NAME, File, Manifest, read_manifest
from modelyard.artifacts.source import CHUNK_BYTES
from modelyard.artifacts.stores import expect_same
from modelyard.artifacts.transfer import Progress
from modelyard.artifacts.verify import sha256_of

ASIDE: Final = ".pushing-"


def damaged_files(target: Path, manifest: Manifest, *, hashes: bool) -> tuple[File, ...]:
    """The files of a version that is there which are missing or of another size, or sha256.
    Raises ArtifactError when it is another version."""
    expect_same(target.as_uri(), read_manifest(target), manifest)
    return tuple(file for file in manifest.files if not _is_whole(target / file.path, file, hashes))


def _is_whole(path: Path, file: File, hashes: bool) -> bool:
    if not path.is_file() or path.stat().st_size != file.size_bytes:
        return False
    return not hashes or sha256_of(path) == file.sha256


def mend_version(folder: Path, files: tuple[File, ...], target: Path, progress: Progress) -> None:
    """Each file appears whole; a replica that has the old one open keeps that."""
    aside = target.parent / f"{ASIDE}{secrets.token_hex(4)}"
    try:
        _copy_files(folder, files, aside, progress)
        for file in files:
            (target / file.path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(aside / file.path, target / file.path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    fsync_tree(target)


def put_version(folder: Path, manifest: Manifest, target: Path, progress: Progress) -> None:
    aside = target.parent / f"{ASIDE}{secrets.token_hex(4)}"
    try:
        _copy(folder, manifest, aside, progress)
        os.rename(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    fsync_folder(target.parent)


def _copy(folder: Path, manifest: Manifest, aside: Path, progress: Progress) -> None:
    _copy_files(folder, manifest.files, aside, progress)
    with (aside / MANIFEST_NAME).open("wb") as stream:
        stream.write((folder / MANIFEST_NAME).read_bytes())
        stream.flush()
        os.fsync(stream.fileno())
    fsync_tree(aside)


def _copy_files(folder: Path, files: tuple[File, ...], aside: Path, progress: Progress) -> None:
    done, size_bytes = 0, sum(file.size_bytes for file in files)
    for file in files:
        target = aside / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with HashingReader(folder, file) as reader, target.open("wb") as stream:
            while chunk := reader.read(CHUNK_BYTES):
                stream.write(chunk)
                done += len(chunk)
                progress(done, size_bytes)
            stream.flush()
            os.fsync(stream.fileno())
