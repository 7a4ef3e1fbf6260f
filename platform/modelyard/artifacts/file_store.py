"""A store that is a folder: this machine's models, or a disk that several machines mount."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from modelyard.artifacts.disk import full_named, require_free, writable
from modelyard.artifacts.file_copy import ASIDE, damaged_files, mend_version, put_version
from modelyard.artifacts.file_lock import alone_while_there
from modelyard.artifacts.json_file import read_bounded
from modelyard.artifacts.manifest import (
    MANIFEST_BYTES,
    MANIFEST_NAME,
    parse_manifest,
)
from modelyard.artifacts.source import CHUNK_BYTES, Body, Stored
from modelyard.artifacts.stores import Pushed, check_identity, packaged
from modelyard.artifacts.transfer import Progress
from modelyard.contract.errors import ArtifactError

logger = logging.getLogger(__name__)

_ELSEWHERE: Final = "push to a store on another disk"


class FileStore:
    """Versions as folders."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def uri(self) -> str:
        return self._root.as_uri()

    def names(self) -> list[str]:
        if not self._root.is_dir():
            raise ArtifactError(f"{self._root}: no such folder: check the address of the store")
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

    def push(self, folder: Path, progress: Progress, *, repair: bool = False) -> Pushed:
        manifest = packaged(folder)
        target = self._root / manifest.name / manifest.version
        if target.exists() and not damaged_files(target, manifest, hashes=repair):
            # Before the lock, which a store that may only be read has no place for.
            return Pushed(target.as_uri(), manifest, made=False)

        def waits() -> None:
            logger.warning("%s: another command writes there: waiting for it", target.parent)

        # An import's and the starter models' lock too: one writer of a model.
        with ExitStack() as stack:
            with writable(str(target), _ELSEWHERE):
                target.parent.mkdir(parents=True, exist_ok=True)
                stack.enter_context(alone_while_there(target.parent / ".lock", waits))
            for left_over in target.parent.glob(f"{ASIDE}*"):
                shutil.rmtree(left_over)  # of a push that was killed
            there = target.exists()
            files = damaged_files(target, manifest, hashes=repair) if there else manifest.files
            size_bytes = sum(file.size_bytes for file in files)
            require_free(target.parent, size_bytes, str(target), _ELSEWHERE)
            with full_named(target.parent, str(target), _ELSEWHERE):
                if not there:
                    put_version(folder, manifest, target, progress)
                    return Pushed(target.as_uri(), manifest, made=True)
                mend_version(folder, files, target, progress)
        return Pushed(target.as_uri(), manifest, False, tuple(file.path for file in files))


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
