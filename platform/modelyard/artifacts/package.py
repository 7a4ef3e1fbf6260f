"""Make a folder into an artifact: hash what is in it and write the manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from modelyard.artifacts.manifest import MANIFEST_NAME, Manifest
from modelyard.artifacts.verify import files_under, sha256_of, size_of, verify
from modelyard.contract.errors import ArtifactError


def write_manifest(folder: Path, draft: Manifest) -> Manifest:
    """The draft with the folder's files in it, written as `folder`/manifest.json.

    The draft's own `files` are ignored. The same content always gives the same bytes: files and
    keys are sorted and there is no time in it. Raises ArtifactError for pickle-like weights and
    for a file name that a manifest cannot hold.
    """
    record: dict[str, Any] = draft.model_dump(by_alias=True) | {"files": _files(folder)}
    try:
        manifest = Manifest.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ArtifactError(
            f"{folder}: {first['input']!r} cannot be in a manifest: {first['msg']}: rename it"
        ) from error
    verify(folder, manifest, hashes=False)
    text = json.dumps(
        manifest.model_dump(mode="json", by_alias=True, exclude_none=True),
        sort_keys=True,
        indent=2,
    )
    (folder / MANIFEST_NAME).write_text(text + "\n")
    return manifest


def _files(folder: Path) -> list[dict[str, Any]]:
    return [
        {"path": path, "size_bytes": size_of(folder / path), "sha256": sha256_of(folder / path)}
        for path in sorted(files_under(folder) - {MANIFEST_NAME})
    ]
