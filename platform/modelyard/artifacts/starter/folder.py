"""Small edits to a model folder that make its bytes the same on every machine."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_NOISE: Final = ("transformers_version", "_from_model_config", "is_local", "local_files_only")


def copy_file(source: Path, target: Path) -> None:
    """Contents only: modes and times of an installed package are not part of a model."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    text = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def remove_noise(folder: Path) -> None:
    """Drop what transformers noted about the machine and its release from the config files."""
    for path in sorted(folder.glob("*config.json")):
        record = json.loads(path.read_bytes())
        write_json(path, {key: value for key, value in record.items() if key not in _NOISE})


def open_modes(folder: Path) -> None:
    """safetensors saves with mode 0600; a model is read by other users of the machine too."""
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o644)
