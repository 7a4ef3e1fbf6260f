"""A disk that is too small: said before the first byte, or as soon as it is full."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from modelyard.contract.errors import ArtifactError

NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def require_free(folder: Path, need_bytes: int, where: str, elsewhere: str) -> None:
    """folder: one that is there, on the disk that is asked. elsewhere: what the person may do but
    make room. Raises ArtifactError naming `where`."""
    free_bytes = shutil.disk_usage(folder).free
    if need_bytes > free_bytes:
        raise ArtifactError(
            f"{where}: needs {need_bytes / 1e6:.1f} MB more, and the disk of {folder} has "
            f"{free_bytes / 1e6:.1f} MB free: make room there, or {elsewhere}"
        )


@contextmanager
def writable(where: str, elsewhere: str) -> Iterator[None]:
    """The first things written near `where`. Raises ArtifactError naming that, and not the lock or
    the folder aside that was refused."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(
            f"{where}: cannot be written ({error.strerror}): correct what the system says, or "
            f"{elsewhere}"
        ) from error


@contextmanager
def full_named(folder: Path, where: str, elsewhere: str) -> Iterator[None]:
    """The disk may fill up while we write, since others write too. Raises ArtifactError for that,
    and OSError for all else that a disk does."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise ArtifactError(
            f"{where}: the disk of {folder} became full ({error.strerror}), and what had been "
            f"written was thrown away: make room there, or {elsewhere}"
        ) from error
