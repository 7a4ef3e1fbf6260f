"""All files of a version into a folder that appears whole."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.disk import NO_SPACE
from modelyard.artifacts.download import Conduct, Stopped, download
from modelyard.artifacts.fsync import fsync_folder, fsync_tree
from modelyard.artifacts.manifest import MANIFEST_NAME, File, Manifest
from modelyard.artifacts.source import Source, Stored
from modelyard.contract.errors import ArtifactError

Progress = Callable[[int, int], None]

_FILES_AT_ONCE: Final = 4


def transfer(
    stored: Stored,
    work: Path,
    folder: Path,
    progress: Progress | None = None,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
    *,
    elsewhere: str,
) -> None:
    """Fetch into `work`, then rename to `folder`, which must not exist; both on one disk.

    `work` is gone on: a process killed anywhere leaves no `folder`, and its files are resumed. One
    process at a time may use it. elsewhere: what one may do about a full disk but make room. Raises
    ArtifactError; on a full disk `work` is thrown away, since a disk that stays full hurts all
    that runs there.
    """
    try:
        _fetch_files(stored, work, progress or (lambda done, total: None), patience)
        _publish(stored, work, folder)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        arrived = arrived_bytes(work)
        shutil.rmtree(work, ignore_errors=True)
        raise ArtifactError(
            f"{stored.source.uri}: the disk of {work.parent} became full after {arrived} of "
            f"{stored.manifest.size_bytes} bytes ({error.strerror}), which were thrown away: make "
            f"room there, or {elsewhere}"
        ) from error


def arrived_bytes(work: Path) -> int:
    """What of a version is in `work`, finished or not."""
    return sum(folder_bytes(work / name) for name in ("files", "parts"))


def folder_bytes(folder: Path) -> int:
    """Bytes of the files below; of those that vanish meanwhile, none."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def _fetch_files(stored: Stored, work: Path, progress: Progress, patience: Patience) -> None:
    source, manifest = stored.source, stored.manifest
    stop = threading.Event()
    conduct = Conduct(patience, stop.wait, random.random, counting(manifest, progress))
    (work / "files").mkdir(parents=True, exist_ok=True)
    (work / "parts").mkdir(exist_ok=True)
    # Parts are named by number, since a manifest may list both `a` and `a.tag`. The largest first:
    # the last to end is then a small one.
    numbered = sorted(enumerate(manifest.files), key=lambda each: -each[1].size_bytes)
    with ThreadPoolExecutor(_FILES_AT_ONCE, "modelyard-fetch") as pool:
        futures = [
            pool.submit(_one, source, file, work, number, conduct) for number, file in numbered
        ]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            # Also when this thread is interrupted: leaving the pool waits for its threads.
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
    # The first that failed has stopped the others.
    errors = [error for each in futures if not each.cancelled() if (error := each.exception())]
    for error in sorted(errors, key=lambda error: isinstance(error, Stopped)):
        raise error


def _one(source: Source, file: File, work: Path, number: int, conduct: Conduct) -> None:
    target = work / "files" / file.path
    # It has this name only when it was whole, verified and on the disk.
    if target.exists():
        conduct.arrived(file.size_bytes)
        return
    download(source, file, work / "parts" / str(number), target, conduct)


def counting(manifest: Manifest, progress: Progress) -> Callable[[int], None]:
    """For several threads: told of bytes that came, tells `progress` how many that makes."""
    lock = threading.Lock()
    done = 0

    def arrived(count: int) -> None:
        nonlocal done
        with lock:
            done += count
            progress(done, manifest.size_bytes)

    return arrived


def _publish(stored: Stored, work: Path, folder: Path) -> None:
    files = work / "files"
    with (files / MANIFEST_NAME).open("wb") as stream:
        stream.write(stored.data)
        stream.flush()
        os.fsync(stream.fileno())
    fsync_tree(files)
    folder.parent.mkdir(parents=True, exist_ok=True)
    os.rename(files, folder)
    fsync_folder(folder.parent)
    shutil.rmtree(work, ignore_errors=True)
