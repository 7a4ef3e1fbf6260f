"""A store that is a folder: this machine's models, or a disk that several machines mount."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from modelyard.artifacts.disk import full_named, require_free
from modelyard.artifacts.file_lock import FileLock, alone
from modelyard.artifacts.fsync import fsync_folder, fsync_tree
from modelyard.artifacts.hashing_reader import HashingReader
from modelyard.artifacts.json_file import read_bounded
from modelyard.artifacts.manifest import (
    MANIFEST_BYTES,
    MANIFEST_NAME,
    Manifest,
    parse_manifest,
    read_manifest,
)
from modelyard.artifacts.source import CHUNK_BYTES, Body, Stored
from modelyard.artifacts.stores import Pushed, already_there, check_identity, packaged
from modelyard.artifacts.transfer import Progress
from modelyard.contract.errors import ArtifactError

logger = logging.getLogger(__name__)

_ASIDE: Final = ".pushing-"
_ELSEWHERE: Final = "push to a store on another disk"


class FileStore:
    """Versions as folders."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def uri(self) -> str:
        return self._root.as_uri()

    def names(self) -> list[str]:
        return [name for name in _folders(self._root) if self.versions(name)]

    def versions(self, name: str) -> list[str]:
        folder = self._root / name
        return [each for each in _folders(folder) if (folder / each / MANIFEST_NAME).is_file()]

    def find(self, name: str, version: str) -> Stored:
        folder = self._root / name / version
        try:
            data = read_bounded(folder / MANIFEST_NAME, MANIFEST_BYTES)
        except FileNotFoundError as error:
            raise ArtifactError(f"{folder}: no such version: see `models list`") from error
        except OSError as error:
            raise ArtifactError(f"{folder}: cannot be read: {error.strerror}") from error
        manifest = parse_manifest(data, str(folder / MANIFEST_NAME))
        check_identity(str(folder), manifest, name, version)
        return Stored(FolderSource(folder), manifest, data)

    def push(self, folder: Path, progress: Progress) -> Pushed:
        manifest = packaged(folder)
        target = self._root / manifest.name / manifest.version
        if target.exists():
            return already_there(target.as_uri(), read_manifest(target), manifest)
        target.parent.mkdir(parents=True, exist_ok=True)

        def waits() -> None:
            logger.warning("%s: another command writes there: waiting for it", target.parent)

        # An import's and the starter models' lock too: one writer of a model.
        with alone(FileLock(target.parent / ".lock"), waits):
            for left_over in target.parent.glob(f"{_ASIDE}*"):
                shutil.rmtree(left_over)  # of a push that was killed
            if target.exists():
                return already_there(target.as_uri(), read_manifest(target), manifest)
            require_free(target.parent, manifest.size_bytes, str(target), _ELSEWHERE)
            with full_named(target.parent, str(target), _ELSEWHERE):
                _put(folder, manifest, target, progress)
        return Pushed(target.as_uri(), manifest, made=True)


class FolderSource:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def uri(self) -> str:
        return self._folder.as_uri()

    @contextmanager
    def open(self, path: str, start: int, tag: str | None) -> Iterator[Body]:
        try:
            stream = (self._folder / path).open("rb")
        except OSError as error:
            raise ArtifactError(f"{self._folder / path}: {error.strerror}") from error
        with stream:
            stream.seek(start)
            size_bytes = os.fstat(stream.fileno()).st_size
            # No tag is compared: the sha256 at the end is of the whole file anyway.
            yield Body("", size_bytes, iter(lambda: stream.read(CHUNK_BYTES), b""))


def _folders(parent: Path) -> list[str]:
    """Hidden ones are under way or somebody else's."""
    if not parent.is_dir():
        return []
    return sorted(
        entry.name
        for entry in parent.iterdir()
        if entry.is_dir() and not entry.name.startswith(".")
    )


def _put(folder: Path, manifest: Manifest, target: Path, progress: Progress) -> None:
    aside = target.parent / f"{_ASIDE}{secrets.token_hex(4)}"
    try:
        _copy(folder, manifest, aside, progress)
        os.rename(aside, target)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    fsync_folder(target.parent)


def _copy(folder: Path, manifest: Manifest, aside: Path, progress: Progress) -> None:
    done = 0
    for file in manifest.files:
        target = aside / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with HashingReader(folder, file) as reader, target.open("wb") as stream:
            while chunk := reader.read(CHUNK_BYTES):
                stream.write(chunk)
                done += len(chunk)
                progress(done, manifest.size_bytes)
            stream.flush()
            os.fsync(stream.fileno())
    with (aside / MANIFEST_NAME).open("wb") as stream:
        stream.write((folder / MANIFEST_NAME).read_bytes())
        stream.flush()
        os.fsync(stream.fileno())
    fsync_tree(aside)
