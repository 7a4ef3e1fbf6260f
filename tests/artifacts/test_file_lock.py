"""A lock whose file is removed by who had it."""

from __future__ import annotations

from pathlib import Path

from modelyard.artifacts.file_lock import FileLock, alone_at


def test_a_lock_that_was_removed_while_one_waited_is_not_taken_for_the_new_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lock"
    first = FileLock(path)
    assert first.try_take()
    third: list[FileLock] = []

    told: list[None] = []

    def waits() -> None:
        told.append(None)
        if third:
            third[0].release()
            return
        path.unlink()
        third.append(FileLock(path))
        assert third[0].try_take()
        first.release()

    with alone_at(path, waits):
        assert len(told) == 2
        assert not FileLock(path).try_take()
    assert not path.exists()


def test_nobody_is_told_of_a_lock_that_is_free(tmp_path: Path) -> None:
    told: list[None] = []
    with alone_at(tmp_path / "lock", lambda: told.append(None)):
        pass
    assert told == []
    assert list(tmp_path.iterdir()) == []
