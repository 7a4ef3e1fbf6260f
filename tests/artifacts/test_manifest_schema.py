"""The schema in docs/ is the code's, and takes what the code writes."""

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from modelyard.artifacts.schema import manifest_schema, schema_text
from modelyard.contract.operations import Kind
from modelyard.testing.manifests import a_manifest

DOCS = Path(__file__).parents[2] / "docs" / "manifest.schema.json"


def record(kind: Kind = Kind.EMBEDDER, **changes: Any) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(a_manifest(kind=kind, **changes).canonical())
    return written


def test_the_schema_in_docs_is_current() -> None:
    advice = "run `python -m modelyard.artifacts.schema > docs/manifest.schema.json`"
    assert DOCS.read_text() == schema_text(), advice


@pytest.mark.parametrize("kind", Kind)
def test_what_is_written_fits_the_schema(kind: Kind) -> None:
    jsonschema_rs.Draft202012Validator(manifest_schema()).validate(record(kind))


@pytest.mark.parametrize("field", ["schema", "name", "limits", "weights", "tokenizer", "files"])
def test_a_manifest_that_lacks_a_field_does_not_fit(field: str) -> None:
    lacking = record()
    del lacking[field]
    with pytest.raises(jsonschema_rs.ValidationError, match=f'"{field}" is a required property'):
        jsonschema_rs.validate(manifest_schema(), lacking)


def test_a_key_that_nobody_knows_does_not_fit() -> None:
    with pytest.raises(jsonschema_rs.ValidationError, match="'max_tokens' was unexpected"):
        jsonschema_rs.validate(manifest_schema(), record() | {"max_tokens": 8})
