"""A version out of a store: into a folder of one's own, or only looked at."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.download import Conduct, receive
from modelyard.artifacts.file_lock import FileLock, alone
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.part import Received
from modelyard.artifacts.source import Stored
from modelyard.artifacts.transfer import Progress, arrived_bytes, counting, transfer
from modelyard.contract.errors import ArtifactError


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
    with alone(FileLock(folder.parent / ".lock")):
        if folder.exists():
            _expect_same(folder, manifest)
            return False
        work = folder.parent / f".pulling-{manifest.digest()[:16]}"
        _expect_room(folder, manifest.size_bytes - arrived_bytes(work))
        transfer(stored, work, folder, progress, patience)
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


def _expect_room(folder: Path, missing_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder.parent).free
    if missing_bytes > free_bytes:
        raise ArtifactError(
            f"{folder}: needs {missing_bytes / 1e6:.1f} MB more, and its disk has "
            f"{free_bytes / 1e6:.1f} MB free: make room there, or name a folder on another disk"
        )
