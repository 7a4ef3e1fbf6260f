"""The part of a file that has arrived, hashed as it grows."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from modelyard.artifacts.source import CHUNK_BYTES


class Received:
    """Bytes that are counted and hashed, and kept nowhere. tag: of the object they are from."""

    def __init__(self) -> None:
        self.size_bytes = 0
        self.tag: str | None = None
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def begin(self, tag: str) -> None:
        """Before the first byte."""
        self.tag = tag

    def append(self, chunk: bytes) -> None:
        self._hash.update(chunk)
        self.size_bytes += len(chunk)

    def restart(self) -> None:
        self.tag = None
        self._hash = hashlib.sha256()
        self.size_bytes = 0


class Part(Received):
    """A file under way, and beside it the tag of the object that it is from.

    Opening one that is there reads it again, since a hash cannot be kept across a kill.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._tag_path = path.with_name(f"{path.name}.tag")
        self._path = path
        if self._tag_path.exists():
            self.tag = self._tag_path.read_text() or None
        self._stream = path.open("a+b", buffering=0)
        self._stream.seek(0)
        while chunk := self._stream.read(CHUNK_BYTES):
            super().append(chunk)

    def begin(self, tag: str) -> None:
        # If a kill falls between the two, the first byte must not be there without its tag.
        self._tag_path.write_text(tag)
        super().begin(tag)

    def append(self, chunk: bytes) -> None:
        # Without a buffer a full disk is found here, and a kill loses little; but the system may
        # then take less than it was given.
        rest = memoryview(chunk)
        while rest:
            rest = rest[self._stream.write(rest) :]
        super().append(chunk)

    def restart(self) -> None:
        self._stream.truncate(0)
        self._tag_path.unlink(missing_ok=True)
        super().restart()

    def finish(self, target: Path) -> None:
        """Put it at `target`, on the disk before it has that name."""
        os.fsync(self._stream.fileno())
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(self._path, target)
        self._tag_path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
