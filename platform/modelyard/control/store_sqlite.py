"""The store in one SQLite file: the default, on one machine's disk or volume."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from modelyard.control.store import Raced, Row, StoreFailed

T = TypeVar("T")

BUSY_S: Final = 1.0
_TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS control "
    "(key TEXT PRIMARY KEY, version INTEGER NOT NULL, data BLOB NOT NULL) WITHOUT ROWID"
)


class SqliteStore:
    """WAL with synchronous=FULL: what was acknowledged survives a power cut.

    One thread owns the connection, so that the loop never waits for a disk, and writes keep their
    order even when a caller has stopped waiting for one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "control-store")
        self._connection: sqlite3.Connection | None = None

    async def read(self, key: str) -> Row | None:
        return await self._on_thread(lambda connection: _read(connection, key))

    async def write(self, key: str, data: bytes, version: str | None) -> str:
        return await self._on_thread(lambda connection: _write(connection, key, data, version))

    async def close(self) -> None:
        def close() -> None:
            if self._connection is not None:
                self._connection.close()

        await asyncio.get_running_loop().run_in_executor(self._thread, close)
        self._thread.shutdown(wait=False)

    async def _on_thread(self, do: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            try:
                return do(self._connected())
            except (sqlite3.Error, OSError) as error:
                raise StoreFailed(f"control's store {self._path} failed: {error}") from error

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _connected(self) -> sqlite3.Connection:
        if self._connection is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=FULL")
                connection.execute(_TABLE)
            except sqlite3.Error:
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _read(connection: sqlite3.Connection, key: str) -> Row | None:
    found = connection.execute("SELECT data, version FROM control WHERE key = ?", (key,)).fetchone()
    return None if found is None else Row(bytes(found[0]), str(found[1]))


def _write(connection: sqlite3.Connection, key: str, data: bytes, version: str | None) -> str:
    """One statement is one transaction."""
    if version is None:
        done = connection.execute(
            "INSERT INTO control VALUES (?, 1, ?) ON CONFLICT DO NOTHING", (key, data)
        )
        following = "1"
    else:
        done = connection.execute(
            "UPDATE control SET data = ?, version = version + 1 WHERE key = ? AND version = ?",
            (data, key, int(version)),
        )
        following = str(int(version) + 1)
    if done.rowcount != 1:
        raise Raced(f"another process has written {key}")
    return following
