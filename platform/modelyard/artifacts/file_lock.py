"""A lock between processes. The kernel drops it with the process, so none is ever stale."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """flock on a file that is never removed: a removed one would let two hold "the" lock. Where it
    is removed all the same (`alone_at`, a refused first import), those who take it look whether it
    is still the one of that name (`is_at`).

    Held until `release`, or for the process's life: what forgets to release it keeps it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Each open has a lock of its own, also within one process.
        self._fd: int | None = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def share(self) -> None:
        """Beside others that share it; waits for one that has it alone."""
        fcntl.flock(self._open_fd, fcntl.LOCK_SH)

    def take(self) -> None:
        """Alone; waits."""
        fcntl.flock(self._open_fd, fcntl.LOCK_EX)

    def try_take(self) -> bool:
        """Alone, or not at all."""
        try:
            fcntl.flock(self._open_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def touch(self) -> None:
        """Note on the file that it is in use now."""
        os.utime(self._open_fd)

    def release(self) -> None:
        """May be called twice."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def is_at(self, path: Path) -> bool:
        """Is it still the file of that name?"""
        try:
            return os.path.samestat(path.stat(), os.fstat(self._open_fd))
        except FileNotFoundError:
            return False

    @property
    def _open_fd(self) -> int:
        if self._fd is None:
            raise ValueError("this lock was released: make a new one")
        return self._fd


@contextmanager
def alone(lock: FileLock, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """The body, while no other process is in it; then the lock is released. waits: called once if
    another has it, so that nobody waits without a word."""
    try:
        _take(lock, waits)
        yield
    finally:
        lock.release()


@contextmanager
def alone_at(path: Path, waits: Callable[[], None]) -> Iterator[None]:
    """`alone` with a lock that is gone afterwards, for a folder that is not ours."""
    with alone_while_there(path, waits):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


@contextmanager
def alone_while_there(path: Path, waits: Callable[[], None] = lambda: None) -> Iterator[None]:
    """`alone`, where whoever had the lock of this name may have removed it, and its folder."""
    lock = FileLock(path)
    try:
        while True:
            _take(lock, waits)
            if lock.is_at(path):
                break
            # By now a third one may have made another.
            lock.release()
            lock = FileLock(path)
        yield
    finally:
        lock.release()


def _take(lock: FileLock, waits: Callable[[], None]) -> None:
    if not lock.try_take():
        waits()
        lock.take()
