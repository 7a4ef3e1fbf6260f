"""A lock between processes. The kernel drops it with the process, so none is ever stale."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class FileLock:
    """flock on a file that is never removed: a removed one would let two hold "the" lock.

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

    @property
    def _open_fd(self) -> int:
        if self._fd is None:
            raise ValueError("this lock was released: make a new one")
        return self._fd


@contextmanager
def alone(lock: FileLock) -> Iterator[None]:
    """The body, while no other process is in it; then the lock is released."""
    try:
        lock.take()
        yield
    finally:
        lock.release()
