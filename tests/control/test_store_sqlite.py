"""The SQLite store, on a real file."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path

import pytest

from modelyard.control.store import Raced, Row, StoreFailed
from modelyard.control.store_sqlite import SqliteStore


async def test_a_row_is_written_once_for_each_version(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "made" / "control.sqlite")
    assert await store.read("a") is None
    first = await store.write("a", b"one", None)
    assert await store.read("a") == Row(b"one", first)
    with pytest.raises(Raced):
        await store.write("a", b"two", None)
    second = await store.write("a", b"two", first)
    with pytest.raises(Raced):
        await store.write("a", b"three", first)
    assert await store.read("a") == Row(b"two", second)
    with pytest.raises(Raced):
        await store.write("b", b"", "7")
    await store.close()


async def test_of_many_writers_one_wins(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / "control.sqlite") for _ in range(6)]
    results = await asyncio.gather(
        *(store.write("a", bytes([n]), None) for n, store in enumerate(stores)),
        return_exceptions=True,
    )
    assert sum(isinstance(result, str) for result in results) == 1
    assert sum(isinstance(result, Raced) for result in results) == 5
    for store in stores:
        await store.close()


async def test_what_was_acknowledged_is_there_for_another_process(tmp_path: Path) -> None:
    path = tmp_path / "control.sqlite"
    script = (
        "import asyncio, os, sys; from pathlib import Path;"
        "from modelyard.control.store_sqlite import SqliteStore;"
        "asyncio.run(SqliteStore(Path(sys.argv[1])).write('a', b'kept', None)); os._exit(9)"
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(path))
    assert await process.wait() == 9
    store = SqliteStore(path)
    assert await store.read("a") == Row(b"kept", "1")
    await store.close()


async def test_a_file_that_is_no_database_is_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "control.sqlite"
    path.write_bytes(b"not a database, and longer than a header of one hundred bytes" * 4)
    store = SqliteStore(path)
    with pytest.raises(StoreFailed, match=r"control\.sqlite"):
        await store.read("a")
    await store.close()


async def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = SqliteStore(tmp_path / "file" / "control.sqlite")
    with pytest.raises(StoreFailed):
        await store.write("a", b"", None)
    await store.close()


async def test_a_locked_file_is_an_error_and_not_a_wait_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "control.sqlite"
    store = SqliteStore(path)
    await store.write("a", b"", None)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFailed, match="locked"):
        await store.write("a", b"x", "1")
    other.execute("ROLLBACK")
    other.close()
    assert await store.write("a", b"x", "1") == "2"
    await store.close()


async def test_commits_reach_the_disk_before_they_are_acknowledged(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "control.sqlite")
    await store.read("a")
    connection = store._connection
    assert connection is not None
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    await store.close()
