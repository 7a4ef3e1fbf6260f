"""Where the bytes of one version come from, and how reading them fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from modelyard.artifacts.manifest import Manifest
from modelyard.contract.errors import ArtifactError

# Memory of a transfer is this for each file under way, and so is what a broken connection loses.
CHUNK_BYTES: Final = 1 << 20


class Interrupted(ArtifactError):
    """It broke off or was put off. What has arrived is good, and trying again may help."""


class Changed(ArtifactError):
    """The object is not the one that the first part was read from."""


@dataclass(frozen=True, slots=True)
class Body:
    """The rest of a file. tag: names its contents, whatever they are (S3's ETag).

    size_bytes: of the whole file. chunks: of at most CHUNK_BYTES; they end early when the
    connection does, or raise Interrupted.
    """

    tag: str
    size_bytes: int
    chunks: Iterator[bytes]


class Source(Protocol):
    """The files of one version."""

    @property
    def uri(self) -> str: ...

    def open(self, path: str, start: int, tag: str | None) -> AbstractContextManager[Body]:
        """The file from byte `start` on; with a `tag`, only if it still has it.

        Raises Interrupted, Changed, and ArtifactError for what will not change: no such file, no
        permission.
        """
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """A version in a store. data: its manifest.json, byte for byte."""

    source: Source
    manifest: Manifest
    data: bytes
