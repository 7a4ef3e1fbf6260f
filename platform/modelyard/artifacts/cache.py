"""A node's cache of versions: fetched once, however many replicas start, and held while used."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path
from typing import Final

from modelyard.artifacts.backoff import Patience
from modelyard.artifacts.cache_folder import CacheFolder
from modelyard.artifacts.cache_room import LARGER_DISK, make_room
from modelyard.artifacts.file_lock import FileLock, alone
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.source import Stored
from modelyard.artifacts.store import resolve
from modelyard.artifacts.stores import open_store, split_version
from modelyard.artifacts.transfer import Progress, arrived_bytes, transfer
from modelyard.artifacts.verify import verify
from modelyard.config.settings import Settings
from modelyard.contract.errors import ArtifactError

logger = logging.getLogger(__name__)

_LOOK_AGAIN_S: Final = 0.25


class Held:
    """A version on this node's disk. Nobody evicts it until `close`, or the process ends."""

    def __init__(
        self, folder: Path, cache: CacheFolder | None = None, lock: FileLock | None = None
    ) -> None:
        self.folder = folder
        self.manifest = read_manifest(folder)
        self._cache = cache
        self._lock = lock
        # Open, so that its number is not given to another folder while it is compared.
        self._folder_fd: int | None = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def discard(self) -> bool:
        """Throw a damaged entry away, so that the next fetch is a new one; False for file://,
        which is nobody's to throw away, and after `close`.

        Only after `verify` raised Damaged: then it goes although other replicas hold it, which
        nothing else that is held does. Who has loaded it keeps the files that it has open and
        needs no others; who has not would load wrong bytes. To wait until nobody holds it would
        keep all replicas that start on this node at once from starting at all. What another
        process has fetched again meanwhile stays. Call `close` after it.
        """
        if self._cache is None or self._folder_fd is None:
            return False
        with alone(self._cache.fetch_lock(self.folder.name)):
            if self.folder.exists() and os.path.samestat(
                self.folder.stat(), os.fstat(self._folder_fd)
            ):
                self._cache.throw_away(self.folder)
        return True

    def close(self) -> None:
        """Let it be evicted. May be called twice."""
        if self._folder_fd is None:
            return
        os.close(self._folder_fd)
        self._folder_fd = None
        if self._lock is not None:
            self._lock.touch()
            self._lock.release()


def fetch(
    uri: str,
    settings: Settings,
    *,
    digest: str | None = None,
    progress: Progress | None = None,
    patience: Patience = Patience(),  # noqa: B008 (frozen)
) -> Held:
    """The version at `uri` on this node's disk, held. Blocks: call it on a thread.

    file:// is used in place. s3:// goes through the cache: one process of the node downloads, the
    others wait for it; with `digest`, a version that is there is used without asking the store.
    progress(done_bytes, all_bytes) is called on other threads. Raises ConfigError for an address
    that is none, ArtifactError for another digest than `digest`, and as `transfer` and `make_room`.
    """
    if uri.startswith("file:"):
        held = Held(resolve(uri, settings.home))
        _expect_digest(uri, held.manifest, digest)
        return held
    root, name, version = split_version(uri)
    cache = CacheFolder(settings.cache)
    if digest is not None and (cached := _held(cache, digest)) is not None:
        _expect_name(uri, cached, f"{name}@{version}")
        return cached
    stored = open_store(root, settings.home, patience).find(name, version)
    _expect_digest(uri, stored.manifest, digest)
    limit_gb = settings.cache_limit_gb
    limit_bytes = None if limit_gb is None else int(limit_gb * 1e9)
    return _fetch(stored, cache, limit_bytes, progress or (lambda done, total: None), patience)


def _fetch(
    stored: Stored,
    cache: CacheFolder,
    limit_bytes: int | None,
    progress: Progress,
    patience: Patience,
) -> Held:
    digest = stored.manifest.digest()
    # Shared from before the first byte: no process makes room by what is being fetched.
    use = cache.use_lock(digest)
    use.share()
    use.touch()
    fetching = cache.fetch_lock(digest)
    try:
        _wait_for_turn(fetching, cache, stored.manifest, progress)
        work = cache.work(digest)
        if _sound(cache, digest):
            # Left by a process that was killed between the rename and its clean-up.
            cache.throw_away(work)
        else:
            cache.throw_away(cache.version(digest))
            make_room(cache, stored.manifest, limit_bytes)
            version = cache.version(digest)
            transfer(stored, work, version, progress, patience, elsewhere=LARGER_DISK)
        return Held(cache.version(digest), cache, use)
    except BaseException:
        use.release()
        raise
    finally:
        fetching.release()


def _held(cache: CacheFolder, digest: str) -> Held | None:
    """What is whole and there, without asking the store."""
    use = cache.use_lock(digest)
    use.share()
    try:
        # Looked at under the lock: nobody can evict it any more.
        if _sound(cache, digest):
            use.touch()
            return Held(cache.version(digest), cache, use)
    except BaseException:
        use.release()
        raise
    use.release()
    return None


def _sound(cache: CacheFolder, digest: str) -> bool:
    """Its manifest and every file's size; a replica reads every byte before it loads one.

    Raises ArtifactError for one that cannot be read: it may well be whole, and others use it.
    """
    folder = cache.version(digest)
    try:
        manifest = read_manifest(folder)
        verify(folder, manifest, hashes=False)
    except ArtifactError as error:
        cause = error.__cause__
        if isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError):
            raise
        if folder.exists():
            logger.warning("%s is damaged and is fetched again: %s", folder, error)
        return False
    return manifest.digest() == digest


def _wait_for_turn(
    fetching: FileLock, cache: CacheFolder, manifest: Manifest, progress: Progress
) -> None:
    """Polled, not waited for in flock, so that who waits shows how far the other is."""
    told = False
    while not fetching.try_take():
        if not told:
            logger.info("another process of this node fetches %s: waiting", manifest.full_name)
            told = True
        progress(arrived_bytes(cache.work(manifest.digest())), manifest.size_bytes)
        time.sleep(_LOOK_AGAIN_S)


def _expect_digest(uri: str, manifest: Manifest, digest: str | None) -> None:
    if digest is not None and manifest.digest() != digest:
        raise ArtifactError(
            f"{uri}: expected the manifest digest {digest}, got {manifest.digest()}: correct "
            "`digest`, or point to the version that it is of"
        )


def _expect_name(uri: str, held: Held, name: str) -> None:
    if held.manifest.full_name != name:
        held.close()
        raise ArtifactError(
            f"{uri}: `digest` is of {held.manifest.full_name}: give the digest of {name}"
        )
