"""Control's hold on its store: an epoch taken once, and writes that a successor makes fail.

Each row begins with its writer's epoch and mark. A control that starts takes the next epoch by
compare-and-set, then rewrites every other row: from then on what an older control writes has a
stale version and is refused, so that fencing needs no transaction over two keys.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

from modelyard.contract.errors import ModelyardError
from modelyard.control.store import Raced, Row, Store, StoreFailed

WAIT_S: Final = 5.0
TRIES: Final = 20
SUCCEEDED: Final = "a later control has taken over"


class Fenced(ModelyardError):
    """A later control has taken over. This one must stop."""


class Journal:
    """One control's door to its store. Not for two tasks at once: its owner holds a lock."""

    def __init__(self, store: Store, mark: str | None = None, wait_s: float = WAIT_S) -> None:
        self._store = store
        self._mark = mark or secrets.token_hex(8)
        self._wait_s = wait_s
        self._versions: dict[str, str | None] = {}
        self.epoch = 0
        self.fenced = False

    async def take(self, key: str, next_of: Callable[[bytes | None], tuple[int, bytes]]) -> bytes:
        """Take an epoch with `key`, whose next content and epoch are made from the last content.

        Returns what was written. Raises StoreFailed when others keep taking it first.
        """
        for _ in range(TRIES):
            row = await self._read(key)
            epoch, body = next_of(None if row is None else _parts(row)[2])
            try:
                await self._put(key, epoch, body, _version(row))
            except Raced:
                continue
            self.epoch, self.fenced = epoch, False
            return body
        raise StoreFailed(f"other controls kept taking {key}: run one control a cluster")

    async def claim(self, key: str) -> bytes | None:
        """A further key's content, rewritten under this epoch. Raises Fenced or StoreFailed."""
        for _ in range(TRIES):
            row = await self._read(key)
            if row is None:
                self._versions[key] = None
                return None
            epoch, _, body = _parts(row)
            self._refuse_later(epoch)
            try:
                await self._put(key, self.epoch, body, row.version)
            except Raced:
                continue
            return body
        raise StoreFailed(f"an older control keeps writing {key}: stop it")

    async def write(self, key: str, body: bytes) -> None:
        """Raises Fenced for good when a later control has taken over, or StoreFailed."""
        if self.fenced:
            raise Fenced(SUCCEEDED)
        version = self._versions.get(key)
        for _ in range(TRIES):
            try:
                return await self._put(key, self.epoch, body, version)
            except Raced:
                row = await self._read(key)
                self._refuse_successor(row)
                # A write of ours whose answer was lost, or a store put back: ours to replace.
                version = _version(row)
        raise StoreFailed(f"{key} kept changing under the writer: run one control a cluster")

    async def owns(self, key: str) -> bool:
        """Whether the row is still what this control wrote. Raises StoreFailed."""
        row = await self._read(key)
        return row is not None and _parts(row)[:2] == (self.epoch, self._mark)

    async def close(self) -> None:
        await self._store.close()

    def _refuse_successor(self, row: Row | None) -> None:
        if row is None:
            return
        epoch, mark, _ = _parts(row)
        self._refuse_later(epoch)
        if epoch == self.epoch and mark != self._mark:
            self._fence()

    def _refuse_later(self, epoch: int) -> None:
        if epoch > self.epoch:
            self._fence()

    def _fence(self) -> None:
        self.fenced = True
        raise Fenced(SUCCEEDED)

    async def _read(self, key: str) -> Row | None:
        try:
            async with asyncio.timeout(self._wait_s):
                return await self._store.read(key)
        except TimeoutError as error:
            raise StoreFailed(f"reading {key} took over {self._wait_s:g} s") from error

    async def _put(self, key: str, epoch: int, body: bytes, version: str | None) -> None:
        data = f"{epoch} {self._mark}\n".encode() + body
        try:
            async with asyncio.timeout(self._wait_s):
                self._versions[key] = await self._store.write(key, data, version)
        except TimeoutError as error:
            raise StoreFailed(f"writing {key} took over {self._wait_s:g} s") from error


def _version(row: Row | None) -> str | None:
    return None if row is None else row.version


def _parts(row: Row) -> tuple[int, str, bytes]:
    """A row's epoch, its writer's mark, and its content. Raises StoreFailed for another's row."""
    head, _, body = row.data.partition(b"\n")
    epoch, _, mark = head.partition(b" ")
    if not epoch.isdigit():
        raise StoreFailed("the store holds a row that control did not write: give it its own")
    return int(epoch), mark.decode("latin-1"), body
