"""The front matter of a model card (README.md): who may use the model, and for what."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import yaml

from modelyard.artifacts.importing.selection import CARD

_NO_NAME: Final = frozenset({"", "~", "null"})


def license_of(folder: Path) -> str | None:
    """The card's license; `license_name` where it says `other`. None: no card, or none in it. Front
    matter that cannot be read names none: --license says what it should.
    """
    path = folder / CARD
    if not path.is_file():
        return None
    record = _front_matter(path)
    name = record.get("license")
    if name == "other":
        name = record.get("license_name") or name
    return name if isinstance(name, str) and name not in _NO_NAME else None


def _front_matter(path: Path) -> dict[str, Any]:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    end = next((at for at, line in enumerate(lines[1:], 1) if line.strip() == "---"), None)
    if end is None:
        return {}
    try:
        # Every value as text: an odd date elsewhere in the card is not the license's concern.
        record = yaml.load("\n".join(lines[1:end]), Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
