"""The manifest: what a version is made of, and the digest that names it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

MANIFEST_NAME: Final = "manifest.json"
SCHEMA: Final = "modelyard/manifest/v1"

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
ScoreKind = Literal["cross-encoder", "bi-encoder", "late-interaction"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class File(_Frozen):
    path: str = Field(pattern=r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$")
    size_bytes: int = Field(ge=0)
    sha256: Sha256

    @field_validator("path")
    @classmethod
    def _inside_the_folder(cls, path: str) -> str:
        if set(path.split("/")) & {".", ".."}:
            raise ValueError(f"{path!r} may lead out of the folder: name the file directly")
        return path


class Limits(_Frozen):
    """`max_context_tokens` bounds prompt plus answer for a generator, each input for the others."""

    max_context_tokens: int = Field(gt=0)
    max_output_tokens: int | None = Field(default=None, gt=0)


class Manifest(_Frozen):
    """A version of a model: name, kind, limits and every file with its size and sha256.

    score_kind: how a reranker scores (rerankers only). labels: a classifier's label names in the
    order of its head. tool_call_parser: vLLM's parser for the model's tool calls (generators only).
    measured: figures taken when the artifact was made, e.g. {"accuracy": 0.93}.
    recipe: sha256 of what a starter model was made from, so that a stale one is made again.
    """

    schema_: Literal["modelyard/manifest/v1"] = Field(default=SCHEMA, alias="schema")
    name: str = Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")
    version: str = Field(pattern=r"^[0-9A-Za-z]+([._-][0-9A-Za-z]+)*$")
    kind: Kind
    license: str
    source: str
    limits: Limits
    score_kind: ScoreKind | None = None
    labels: tuple[str, ...] = ()
    tool_call_parser: str | None = None
    measured: dict[str, float] = Field(default_factory=dict)
    recipe: Sha256 | None = None
    files: tuple[File, ...]

    @model_validator(mode="after")
    def _each_file_once(self) -> Self:
        paths = [file.path for file in self.files]
        twice = sorted({path for path in paths if paths.count(path) > 1})
        if twice:
            raise ValueError(f"files lists {twice[0]!r} twice: list each file once")
        if MANIFEST_NAME in paths:
            raise ValueError(f"files lists {MANIFEST_NAME}, which cannot hold its own hash")
        return self

    @property
    def full_name(self) -> str:
        return f"{self.name}@{self.version}"

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    def canonical(self) -> bytes:
        """The bytes that are hashed: sorted keys, no spaces, so the same content has one digest."""
        record = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return json.dumps(record, sort_keys=True, separators=(",", ":")).encode()

    def digest(self) -> str:
        """sha256 of the canonical manifest: the identity of the version."""
        return hashlib.sha256(self.canonical()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Read `folder`/manifest.json. Raises ArtifactError naming the file and the field."""
    path = folder / MANIFEST_NAME
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ArtifactError(f"{path}: {error.strerror}; run `modelyard models prepare`") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "manifest"
        raise ArtifactError(f"{path}: {where}: {first['msg']}") from error
