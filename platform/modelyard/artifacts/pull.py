"""A version out of a store: into a folder of one's own, or only looked at."""

from __future__ import annotations

import errno
import logging
import random
import shutil
import threading
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Final

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.disk import require_free, writable
from modelyard.artifacts.download import Conduct, receive
from modelyard.artifacts.file_lock import alone_at
from modelyard.artifacts.manifest import MANIFEST_NAME, Manifest, read_manifest
from modelyard.artifacts.part import Received
from modelyard.artifacts.source import Stored
from modelyard.artifacts.transfer import Progress, arrived_bytes, counting, transfer
from modelyard.artifacts.verify import Damaged, files_under, verify
from modelyard.contract.errors import ArtifactError

logger = logging.getLogger(__name__)

_ELSEWHERE: Final = "name a folder on another disk"
_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST})


class Pulled(StrEnum):
    """What a pull met and did."""

    FETCHED = "pulled"
    PRESENT = "present"
    REPLACED = "damaged, fetched again"


def pull(
    stored: Stored,
    folder: Path,
    progress: Progress,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> Pulled:
    """Put the version at `folder`, if it is not there already. Resumes what was broken off.

    What is there is verified, every byte. Damaged, it gives way to a new copy once that is whole:
    until then the disk needs room for both, and when the fetch fails nothing is lost (the store
    may be this very folder). Raises ArtifactError when something else is there, when the disk has
    too little room, and as `transfer`.
    """
    if folder.is_symlink():
        folder = folder.resolve()

    def waits() -> None:
        logger.warning("%s: another command pulls it: waiting for that", folder)

    with ExitStack() as stack:
        with writable(str(folder), "name another folder"):
            folder.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(alone_at(folder.parent / f".{folder.name}.pulling", waits))
        if folder.exists():
            if not _is_damaged(folder, stored.manifest):
                return Pulled.PRESENT
            _replace(stored, folder, progress, patience)
            return Pulled.REPLACED
        try:
            _fetch(stored, folder, progress, patience)
        except OSError as error:
            # A rename replaces no folder with something in it: an import was first.
            if error.errno not in _TAKEN:
                raise
            shutil.rmtree(_work(stored, folder), ignore_errors=True)
            _expect_same(folder, stored.manifest)
            return Pulled.PRESENT
    return Pulled.FETCHED


def _fetch(stored: Stored, folder: Path, progress: Progress, patience: Patience) -> None:
    work = _work(stored, folder)
    missing_bytes = stored.manifest.size_bytes - arrived_bytes(work)
    require_free(folder.parent, missing_bytes, str(folder), _ELSEWHERE)
    transfer(stored, work, folder, progress, patience, elsewhere=_ELSEWHERE)


def _work(stored: Stored, folder: Path) -> Path:
    return folder.parent / f".pulling-{stored.manifest.digest()[:16]}"


def _replace(stored: Stored, folder: Path, progress: Progress, patience: Patience) -> None:
    """A replica that has the damaged files open keeps them."""
    new, old = (folder.parent / f".{folder.name}.{which}" for which in ("new", "damaged"))
    for left_over in (new, old):
        if left_over.exists():
            shutil.rmtree(left_over)  # of a pull that was killed between the renames
    _fetch(stored, new, progress, patience)
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)


def _is_damaged(folder: Path, manifest: Manifest) -> bool:
    """Raises ArtifactError for another version, and for a damaged one with files of others in it,
    which would go with it."""
    fault = _fault(folder, manifest)
    if fault is None:
        return False
    others = files_under(folder) - {file.path for file in manifest.files} - {MANIFEST_NAME}
    if others:
        raise ArtifactError(
            f"{folder}: is a damaged copy of {manifest.full_name}, and holds files that are none "
            f"of its own ({min(others)}): move them away, or name another folder"
        )
    logger.warning("%s", fault)
    return True


def _fault(folder: Path, manifest: Manifest) -> str | None:
    """What is damaged. Raises ArtifactError for another version, and where nothing is damaged and
    the folder does not verify all the same."""
    if not (folder / MANIFEST_NAME).exists():
        raise ArtifactError(f"{folder}: is there and holds no version: name another folder")
    try:
        read_manifest(folder)
    except ArtifactError as error:
        return str(error)
    _expect_same(folder, manifest)
    try:
        verify(folder, manifest)
    except Damaged as error:
        return str(error)
    except ArtifactError as error:
        if all((folder / file.path).exists() for file in manifest.files):
            raise
        return str(error)
    return None


def verify_stored(
    stored: Stored,
    progress: Progress,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> None:
    """Read every byte of a version in its store, and keep none. Raises as `download`."""
    arrived = counting(stored.manifest, progress)
    conduct = Conduct(patience, threading.Event().wait, random.random, arrived)
    for file in stored.manifest.files:
        receive(stored.source, file, Received(), conduct)


def _expect_same(folder: Path, manifest: Manifest) -> None:
    found = read_manifest(folder).digest()
    if found != manifest.digest():
        raise ArtifactError(
            f"{folder}: holds the manifest digest {found}, the store's is {manifest.digest()}: "
            "name another folder"
        )
