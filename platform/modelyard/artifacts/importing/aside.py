"""Build a version aside and move it into place whole, one builder per model."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from modelyard.artifacts.file_lock import FileLock
from modelyard.artifacts.fsync import fsync_folder, fsync_tree
from modelyard.contract.errors import ArtifactError

_PREFIX: Final = ".importing-"
_LOCK: Final = ".lock"  # the starter models' and a push's lock too


@contextmanager
def aside(parent: Path) -> Iterator[Path]:
    """An empty folder beside the versions in `parent`, so that moving it is one rename.

    It is removed at the end, whatever happened, and `parent` too if it was made for it and no
    version came; what a killed import left is removed at the start. Raises ArtifactError while
    another process makes a version of the same model.
    """
    new = not parent.exists()
    lock = FileLock(parent / _LOCK)
    try:
        if not lock.try_take() or not lock.is_at(parent / _LOCK):
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
            if new:
                _remove_unused(parent)
    finally:
        lock.release()


def _remove_unused(parent: Path) -> None:
    """Under the lock: who waits for it meanwhile sees that it is no longer the one of that name."""
    if {path.name for path in parent.iterdir()} == {_LOCK}:
        with suppress(OSError):
            (parent / _LOCK).unlink()
            parent.rmdir()


def replace_whole(folder: Path, target: Path) -> None:
    """`move_into_place` where a damaged version lies, which steps aside first: a rename cannot
    replace a folder with something in it. Who has its files open reads on."""
    old = target.parent / f"{_PREFIX}{secrets.token_hex(4)}"
    os.rename(target, old)
    move_into_place(folder, target)
    shutil.rmtree(old, ignore_errors=True)


def move_into_place(folder: Path, target: Path) -> None:
    """The bytes are on the disk before the name is: after a power cut it is whole or absent."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
    fsync_tree(folder)
    os.rename(folder, target)
    fsync_folder(target.parent)
