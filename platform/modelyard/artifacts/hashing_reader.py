"""Read a file for an upload, and refuse it when it is not the one that was packaged."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from types import TracebackType
from typing import Self

from modelyard.artifacts.manifest import File
from modelyard.contract.errors import ArtifactError


class HashingReader(io.RawIOBase):
    """`folder`/`file.path`, hashed as it is read, once and in order.

    Cannot seek, so an uploader sends what it has read and nothing it reads again. The read that
    gives the last bytes raises ArtifactError when size or sha256 are not the manifest's; so no
    upload of them ends well.
    """

    def __init__(self, folder: Path, file: File) -> None:
        self._file = file
        self._path = folder / file.path
        try:
            self._stream = self._path.open("rb", buffering=0)
        except OSError as error:
            raise ArtifactError(f"{self._path}: cannot be read: {error.strerror}") from error
        self._hash = hashlib.sha256()
        self._read_bytes = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size) or b""
        self._hash.update(data)
        self._read_bytes += len(data)
        if self._read_bytes >= self._file.size_bytes or (not data and size != 0):
            self._check()
        return data

    def close(self) -> None:
        self._stream.close()
        super().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self) -> None:
        expected = (self._file.size_bytes, self._file.sha256)
        got = (self._read_bytes, self._hash.hexdigest())
        if got != expected:
            raise ArtifactError(
                f"{self._path}: expected sha256 {expected[1]} of {expected[0]} bytes, got {got[1]} "
                f"of {got[0]} bytes: it has changed since it was packaged: "
                "import the folder again as a new version"
            )
