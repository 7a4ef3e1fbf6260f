"""Build a version aside and move it into place whole, one builder per model."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from modelyard.artifacts.file_lock import FileLock
from modelyard.artifacts.fsync import fsync_folder, fsync_tree
from modelyard.contract.errors import ArtifactError

_PREFIX: Final = ".importing-"


@contextmanager
def aside(parent: Path) -> Iterator[Path]:
    """An empty folder beside the versions in `parent`, so that moving it is one rename.

    It is removed at the end, whatever happened; what a killed import left is removed at the start.
    Raises ArtifactError while another process makes a version of the same model.
    """
    lock = FileLock(parent / ".lock")  # the starter models' lock too
    try:
        if not lock.try_take():
            raise ArtifactError(
                f"{parent}: another command is making a version of this model: wait for it"
            )
        for left_over in parent.glob(f"{_PREFIX}*"):
            shutil.rmtree(left_over)
        folder = parent / f"{_PREFIX}{secrets.token_hex(4)}"
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()


def move_into_place(folder: Path, target: Path) -> None:
    """The bytes are on the disk before the name is: after a power cut it is whole or absent."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
    fsync_tree(folder)
    os.rename(folder, target)
    fsync_folder(target.parent)
