"""Where a node's cache keeps its things."""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from modelyard.artifacts.file_lock import FileLock
from modelyard.artifacts.transfer import folder_bytes


@dataclass(frozen=True, slots=True)
class CacheFolder:
    """One folder a version, named by its manifest's digest.

    versions/<digest>: whole. fetching/<digest>: under way, or left by a process that was killed.
    locks/<digest>.use: shared by whoever uses or fetches it, and its time is the last use;
    .fetch: held by the one that fetches. trash: on its way out.
    """

    root: Path

    def version(self, digest: str) -> Path:
        return self.root / "versions" / digest

    def work(self, digest: str) -> Path:
        return self.root / "fetching" / digest

    def use_lock(self, digest: str) -> FileLock:
        return FileLock(self.root / "locks" / f"{digest}.use")

    def fetch_lock(self, digest: str) -> FileLock:
        return FileLock(self.root / "locks" / f"{digest}.fetch")

    def room_lock(self) -> FileLock:
        return FileLock(self.root / "locks" / "room")

    def digests(self) -> set[str]:
        """Of all that takes room, whole or not."""
        return {
            path.name
            for name in ("versions", "fetching")
            if (self.root / name).is_dir()
            for path in (self.root / name).iterdir()
        }

    def last_used(self, digest: str) -> float:
        """Seconds since the epoch; 0 for what nobody has used."""
        try:
            return (self.root / "locks" / f"{digest}.use").stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def reserve(self, digest: str, size_bytes: int) -> None:
        """Say how large it will be, before its first byte is here."""
        work = self.work(digest)
        work.mkdir(parents=True, exist_ok=True)
        (work / "size").write_text(str(size_bytes))

    def size_bytes(self, digest: str) -> int:
        """Of what is whole, what it takes; of what is under way, what it will take."""
        # Read before it is looked whether the version is there: that comes, and then this goes.
        reserved = self._reserved_bytes(digest)
        arrived = folder_bytes(self.work(digest))
        if self.version(digest).exists():
            # Its reservation is used up, though a process that was killed after the rename, or is
            # making it last on the disk, has left it there.
            return folder_bytes(self.version(digest)) + arrived
        return max(reserved, arrived)

    def awaited_bytes(self, digest: str) -> int:
        """What is still to come of one that is under way."""
        return max(0, self.size_bytes(digest) - self._present_bytes(digest))

    def _present_bytes(self, digest: str) -> int:
        return folder_bytes(self.version(digest)) + folder_bytes(self.work(digest))

    def _reserved_bytes(self, digest: str) -> int:
        try:
            return int((self.work(digest) / "size").read_text() or 0)
        except FileNotFoundError:
            return 0

    def throw_away(self, folder: Path) -> None:
        """Gone under its name at once, then from the disk: a kill between the two leaves trash."""
        trash = self.root / "trash"
        trash.mkdir(parents=True, exist_ok=True)
        try:
            os.rename(folder, trash / f"{folder.name}-{secrets.token_hex(4)}")
        except FileNotFoundError:
            return
        self.empty_trash()

    def empty_trash(self) -> None:
        # Not the folder itself: another process may be moving something into it.
        for folder in (self.root / "trash").glob("*"):
            shutil.rmtree(folder, ignore_errors=True)
