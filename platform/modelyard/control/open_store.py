"""From the `state_path` of a config to a store."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from modelyard.config.settings import DEFAULT_HOME, expand
from modelyard.control.store import Store
from modelyard.control.store_sqlite import SqliteStore

S3: Final = "s3://"


def open_store(state_path: str, home: Path) -> Store:
    """`s3://bucket/prefix`, or the path of a SQLite file. Raises ConfigError for a wrong one.

    `~/.modelyard` is this installation's `home`, as it is for artifacts.
    """
    if state_path.startswith(S3):
        # Here: boto3 takes a second to import, and most installations keep a file.
        from modelyard.control.store_s3 import S3Store

        bucket, _, prefix = state_path.removeprefix(S3).partition("/")
        return S3Store(bucket, prefix)
    path = expand(state_path, "state_path").absolute()
    default = expand(DEFAULT_HOME, "state_path")
    if path.is_relative_to(default):
        path = home / path.relative_to(default)
    return SqliteStore(path)
