"""A version out of a store: into a folder of one's own, or only looked at."""

from __future__ import annotations

import errno
import logging
import random
import shutil
import threading
from pathlib import Path
from typing import Final

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.disk import require_free
from modelyard.artifacts.download import Conduct, receive
from modelyard.artifacts.file_lock import alone_at
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.part import Received
from modelyard.artifacts.source import Stored
from modelyard.artifacts.transfer import Progress, arrived_bytes, counting, transfer
from modelyard.contract.errors import ArtifactError

logger = logging.getLogger(__name__)

_ELSEWHERE: Final = "name a folder on another disk"
_TAKEN: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def pull(
    stored: Stored,
    folder: Path,
    progress: Progress,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> bool:
    """Put the version at `folder`; False when it is there already. Resumes what was broken off.

    Raises ArtifactError when something else is there, when the disk has too little room, and as
    `transfer`.
    """
    manifest = stored.manifest
    folder.parent.mkdir(parents=True, exist_ok=True)

    def waits() -> None:
        logger.warning("%s: another command pulls it: waiting for that", folder)

    with alone_at(folder.parent / f".{folder.name}.pulling", waits):
        if folder.exists():
            _expect_same(folder, manifest)
            return False
        work = folder.parent / f".pulling-{manifest.digest()[:16]}"
        missing_bytes = manifest.size_bytes - arrived_bytes(work)
        require_free(folder.parent, missing_bytes, str(folder), _ELSEWHERE)
        try:
            transfer(stored, work, folder, progress, patience, elsewhere=_ELSEWHERE)
        except OSError as error:
            # A rename replaces no folder with something in it: an import was first.
            if error.errno not in _TAKEN:
                raise
            shutil.rmtree(work, ignore_errors=True)
            _expect_same(folder, manifest)
            return False
    return True


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
