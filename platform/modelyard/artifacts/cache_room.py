"""Room in a node's cache: what was used least lately goes, what runs stays."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import Final

from modelyard.artifacts.cache_folder import CacheFolder
from modelyard.artifacts.file_lock import alone
from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.transfer import arrived_bytes
from modelyard.contract.errors import ArtifactError

LARGER_DISK: Final = "set MODELYARD_CACHE to a larger disk"


@dataclass(frozen=True, slots=True)
class Room:
    """What a cache may take (None: what the disk has), and what it takes now.

    free_bytes: of the disk, without what fetches that are under way will take of it.
    """

    limit_bytes: int | None
    used_bytes: int
    free_bytes: int
    missing_bytes: int

    @property
    def over_limit(self) -> bool:
        return self.limit_bytes is not None and self.used_bytes > self.limit_bytes

    @property
    def enough(self) -> bool:
        return not self.over_limit and self.missing_bytes <= self.free_bytes


def make_room(cache: CacheFolder, manifest: Manifest, limit_bytes: int | None) -> None:
    """Reserve room for a version that its caller holds, and evict until it is there.

    Evicts by last use, also what a killed process left half-fetched; never what a process holds.
    One process at a time, so that two versions fetched at once are both counted. Raises
    ArtifactError when all that may go is gone and it is still too little.
    """
    digest = manifest.digest()
    with alone(cache.room_lock()):
        cache.empty_trash()
        cache.reserve(digest, manifest.size_bytes)
        # What is held is noted as used now first: it may have been held for weeks.
        others = cache.digests() - {digest}
        candidates = sorted(_not_held(cache, others), key=cache.last_used)
        # What a killed process has reserved it takes of no disk.
        held = others - set(candidates)
        while not (room := _room(cache, manifest, limit_bytes, held)).enough:
            if not candidates:
                cache.reserve(digest, 0)
                raise ArtifactError(_too_little(cache, manifest, room))
            _evict(cache, candidates.pop(0))


def _not_held(cache: CacheFolder, digests: set[str]) -> list[str]:
    free = []
    for digest in digests:
        lock = cache.use_lock(digest)
        if lock.try_take():
            free.append(digest)
        else:
            lock.touch()
        lock.release()
    return free


def _evict(cache: CacheFolder, digest: str) -> None:
    lock = cache.use_lock(digest)
    try:
        # It may have been taken since it was looked at.
        if lock.try_take():
            cache.throw_away(cache.version(digest))
            cache.throw_away(cache.work(digest))
    finally:
        lock.release()


def _room(cache: CacheFolder, manifest: Manifest, limit_bytes: int | None, held: set[str]) -> Room:
    awaited_bytes = sum(cache.awaited_bytes(digest) for digest in held)
    return Room(
        limit_bytes=limit_bytes,
        used_bytes=sum(cache.size_bytes(digest) for digest in cache.digests()),
        free_bytes=max(0, shutil.disk_usage(cache.root).free - awaited_bytes),
        missing_bytes=manifest.size_bytes - arrived_bytes(cache.work(manifest.digest())),
    )


def _too_little(cache: CacheFolder, manifest: Manifest, room: Room) -> str:
    if room.limit_bytes is not None and room.over_limit:
        others = room.used_bytes - cache.size_bytes(manifest.digest())
        return (
            f"{manifest.full_name}: needs {_mb(manifest.size_bytes)} of the cache {cache.root}, "
            f"whose limit is {_mb(room.limit_bytes)}, of which versions in use hold "
            f"{_mb(others)}: raise MODELYARD_CACHE_LIMIT_GB, or remove a version that runs here"
        )
    return (
        f"{manifest.full_name}: needs {_mb(room.missing_bytes)} more on the disk of {cache.root}, "
        f"which has {_mb(room.free_bytes)} free beside what is being fetched: make room there, "
        f"or {LARGER_DISK}"
    )


def _mb(count: int) -> str:
    return f"{count / 1e6:.1f} MB"
