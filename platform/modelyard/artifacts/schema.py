"""`python -m modelyard.artifacts.schema`: the manifest's JSON Schema, as docs/ holds it."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from modelyard.artifacts.manifest import SCHEMA, Manifest

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def manifest_schema() -> dict[str, Any]:
    """What the models refuse by a rule of their own (fields of a kind, paths that lead out of the
    folder) no schema says: `read_manifest` has the last word."""
    record = Manifest.model_json_schema(by_alias=True)
    # A manifest is always written with its schema, and read without one by mistake only.
    record["required"] = sorted({"schema", *record["required"]})
    return {"$schema": _DIALECT, "$id": SCHEMA, **_plain(record)}


def _plain(node: Any) -> Any:
    """Without the titles that pydantic makes of names, and with each description on one line."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(value) for key, value in node.items() if not _is_title(key, value)}
    if isinstance(text := kept.get("description"), str):
        kept["description"] = " ".join(text.split())
    return kept


def _is_title(key: str, value: Any) -> bool:
    return key == "title" and isinstance(value, str)


def schema_text() -> str:
    return json.dumps(manifest_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
