"""Make names last: a rename is on the disk only when its folder is."""

from __future__ import annotations

import os
from pathlib import Path


def fsync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def fsync_tree(folder: Path) -> None:
    """Every folder under it; files are the business of who wrote them."""
    for parent, _, _ in os.walk(folder):
        fsync_folder(Path(parent))
