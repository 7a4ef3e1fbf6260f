"""Read a JSON file of a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from modelyard.contract.errors import ArtifactError


def read_object(path: Path) -> dict[str, Any]:
    """Raises ArtifactError when the file is missing, is no JSON, or is no object."""
    try:
        record = json.loads(path.read_bytes())
    except OSError as error:
        raise ArtifactError(
            f"{path}: expected a readable file, got {error.strerror}: fetch the model again"
        ) from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path}: expected JSON, got {error}: fetch the model again") from error
    if not isinstance(record, dict):
        raise ArtifactError(
            f"{path}: expected a JSON object, got {type(record).__name__}: fetch the model again"
        )
    return record


def read_bounded(path: Path, limit_bytes: int) -> bytes:
    """Raises ArtifactError for a larger file, before it is in memory; OSError as `open` does."""
    with path.open("rb") as stream:
        data = stream.read(limit_bytes + 1)
    require_bounded(len(data), limit_bytes, str(path))
    return data


def require_bounded(size_bytes: int, limit_bytes: int, where: str) -> None:
    if size_bytes > limit_bytes:
        raise ArtifactError(
            f"{where}: expected at most {limit_bytes} bytes, got more: it is not what its name "
            "says, fetch the model again"
        )


def require_single_keys(data: bytes) -> None:
    """Raises ValueError naming a key that an object holds twice: readers differ in which counts."""
    json.loads(data, object_pairs_hook=_single_keys, parse_constant=_no_number)


def _single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(f"holds the key {key!r} twice: keep one")
        record[key] = value
    return record


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"holds {name}, which is no number of JSON: remove it")
