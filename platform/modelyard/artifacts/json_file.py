"""Read a JSON file of a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

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
