"""Ways to break a version that its digests do not show: every hash is made again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from modelyard.artifacts.manifest import MANIFEST_NAME, Manifest, read_manifest
from modelyard.artifacts.package import write_manifest

WEIGHTS = "model.safetensors"


def repackage(folder: Path) -> Manifest:
    """Package the folder again, whatever its files now hold."""
    return write_manifest(folder, read_manifest(folder))


def rehash(folder: Path) -> None:
    """As `repackage`, without a look at what the files say: somebody else made this package."""
    record = json.loads((folder / MANIFEST_NAME).read_bytes())
    for file in record["files"]:
        data = (folder / file["path"]).read_bytes()
        file |= {"size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    lines = "".join(
        f"{file['sha256']}  {file['path']}\n"
        for file in record["files"]
        if file["path"].endswith(".safetensors")
    )
    record["weights"]["sha256"] = hashlib.sha256(lines.encode()).hexdigest()
    (folder / MANIFEST_NAME).write_text(json.dumps(record))


def rewrite_weights(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the tensors, which are torch's: numpy has no bfloat16."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
