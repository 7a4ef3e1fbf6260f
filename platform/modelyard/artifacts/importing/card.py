"""The front matter of a model card (README.md): who may use the model, and for what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from modelyard.artifacts.importing.selection import CARD
from modelyard.contract.errors import ArtifactError


def license_of(folder: Path) -> str | None:
    """The card's license; `license_name` where it says `other`. None: no card, or none in it.

    Raises ArtifactError for front matter that is no YAML.
    """
    path = folder / CARD
    if not path.is_file():
        return None
    record = _front_matter(path)
    name = record.get("license")
    if name == "other":
        name = record.get("license_name") or name
    return name if isinstance(name, str) and name else None


def _front_matter(path: Path) -> dict[str, Any]:
    lines = path.read_text(errors="replace").splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return {}
    try:
        record = yaml.safe_load("\n".join(lines[1:end]))
    except yaml.YAMLError as error:
        raise ArtifactError(f"{path}: the front matter is no YAML: say --license") from error
    return record if isinstance(record, dict) else {}
