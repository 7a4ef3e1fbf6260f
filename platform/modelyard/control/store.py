"""Where control keeps what it must not lose: a few keys, each written whole and conditionally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from modelyard.contract.errors import ModelyardError


class StoreFailed(ModelyardError):
    """The store did not answer, or refused. A write may or may not have happened."""


class Raced(ModelyardError):
    """The key no longer has the version that the writer had seen. Nothing was written."""


@dataclass(frozen=True, slots=True)
class Row:
    """A key's bytes and the store's own mark of this version of them."""

    data: bytes
    version: str


class Store(Protocol):
    """Compare-and-set on single keys. Nothing here spans two keys, because S3 could not."""

    async def read(self, key: str) -> Row | None:
        """The key's row, None when there is none. Raises StoreFailed."""

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        """Replace the row that has `version`; None: there must be none. The new version.

        Raises Raced or StoreFailed.
        """

    async def close(self) -> None: ...
