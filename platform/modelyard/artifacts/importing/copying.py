"""Copy a model's files. Never hard links: a version must not change when its source does."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from modelyard.artifacts.disk import NO_SPACE, require_free
from modelyard.artifacts.importing.selection import INDEX, Selection, is_model_folder, select
from modelyard.artifacts.json_file import read_object
from modelyard.artifacts.starter.folder import copy_file
from modelyard.artifacts.verify import size_of
from modelyard.contract.errors import ArtifactError

_ELSEWHERE: Final = "set MODELYARD_HOME on another disk"


def selected(folder: Path) -> Selection:
    """What to keep of a folder. Raises ArtifactError as `select` does."""
    return select(model_files(folder), str(folder), shards_of(folder / INDEX))


def model_files(folder: Path) -> set[str]:
    """Of its top and of the subfolders that a model has, as relative posix paths.

    Raises ArtifactError for a folder that cannot be read.
    """
    found: set[str] = set()
    with file_errors_named(folder):
        for entry in os.scandir(folder):
            if not os.path.isdir(entry):
                found.add(entry.name)
            elif is_model_folder(entry.name):
                below = os.scandir(entry)
                found |= {f"{entry.name}/{one.name}" for one in below if not os.path.isdir(one)}
    return found


def shards_of(index: Path) -> set[str] | None:
    """The weight files that an index names; None without one."""
    if not index.is_file():
        return None
    names = read_object(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise ArtifactError(f"{index}: weight_map names no files: fetch the model again")
    return {str(name) for name in names.values()}


def copy_files(source: Path, paths: Iterable[str], target: Path) -> None:
    """Raises ArtifactError when the disk is too small, before the first byte is written."""
    wanted = list(paths)
    require_room(target, sum(size_of(source / path) for path in wanted))
    with file_errors_named(target):
        for path in wanted:
            copy_file(source / path, target / path)


def require_room(target: Path, need_bytes: int) -> None:
    """Raises ArtifactError when the disk of `target`, which is there, has less."""
    require_free(target, need_bytes, str(target.parent), _ELSEWHERE)


@contextmanager
def file_errors_named(target: Path) -> Iterator[None]:
    """A disk that fills up while we write (others write too) is said in the same words, and any
    other file that cannot be read or written by its name."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            first_line = next(iter(str(error).strip().splitlines()), type(error).__name__)
            what = error.strerror or first_line
            path = Path(os.fsdecode(error.filename or target.parent))
            # What is built aside is gone by the time that somebody reads of it.
            where = target.parent if path.is_relative_to(target) else path
            raise ArtifactError(f"{where}: {what}: check the file, and who may read it") from error
        raise ArtifactError(
            f"{target.parent}: the disk is full ({error.strerror}): make room, or {_ELSEWHERE}"
        ) from error
