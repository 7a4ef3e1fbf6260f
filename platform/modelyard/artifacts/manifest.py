"""The manifest: what a version is made of, and the digest that names it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from modelyard.artifacts.advice import no_manifest
from modelyard.artifacts.json_file import read_bounded, require_bounded, require_single_keys
from modelyard.artifacts.manifest_parts import (
    AnswerArgs,
    ComputeDtype,
    Device,
    Eval,
    File,
    Limits,
    Part,
    Runtime,
    Sha256,
    StoredDtype,
    Tokenizer,
    WarmPrompt,
    Warmup,
    Weights,
)
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

__all__ = [
    "GOLDEN_NAME",
    "MANIFEST_BYTES",
    "MANIFEST_FILES",
    "MANIFEST_NAME",
    "SCHEMA",
    "AnswerArgs",
    "ComputeDtype",
    "Device",
    "Eval",
    "File",
    "Identity",
    "Limits",
    "Manifest",
    "Runtime",
    "ScoreKind",
    "Sha256",
    "StoredDtype",
    "Tokenizer",
    "WarmPrompt",
    "Warmup",
    "Weights",
    "parse_manifest",
    "read_manifest",
]

MANIFEST_NAME: Final = "manifest.json"
GOLDEN_NAME: Final = "golden.json"
# What a store may make us read and compare: the largest models have some hundred files.
MANIFEST_FILES: Final = 10_000
MANIFEST_BYTES: Final = 4 << 20
SCHEMA: Final = "modelyard/manifest/v1"

_AGAIN: Final = (
    "import the folder again (`modelyard models import`), or fetch it again from where it came"
)

ScoreKind = Literal["cross-encoder", "bi-encoder", "late-interaction"]


class Identity(Part):
    """What the author of a version says of it; the rest of a manifest is read from its files."""

    schema_: Literal["modelyard/manifest/v1"] = Field(default=SCHEMA, alias="schema")
    name: str = Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*$")
    version: str = Field(pattern=r"^[0-9A-Za-z]+([._-][0-9A-Za-z]+)*$")
    kind: Kind
    """What it can be asked."""
    license: str
    source: str
    """Where the weights come from."""
    limits: Limits
    runtime: Runtime
    device: Device
    eval: Eval | None = None
    score_kind: ScoreKind | None = None
    """How a reranker scores. Rerankers only."""
    embedding_space: str | None = Field(default=None, min_length=1)
    """Versions of an embedder that share it may stand in for each other. Embedders only."""
    labels: tuple[str, ...] = ()
    """A classifier's label names in the order of its head. Classifiers only."""
    measured: dict[str, float] = Field(default_factory=dict)
    """Figures taken when the artifact was made, such as {"accuracy": 0.93}.
    `output_tokens_per_s`, of one answer, is compared with limits.drain_s by `modelyard check`."""
    recipe: Sha256 | None = None
    """What a starter model was made from, so that a stale one is made again."""

    @property
    def full_name(self) -> str:
        return f"{self.name}@{self.version}"

    @model_validator(mode="after")
    def _fields_of_its_kind(self) -> Self:
        engine = "vllm" if self.kind is Kind.GENERATOR else "torch"
        if self.runtime.engine != engine:
            raise ValueError(f"{self.kind}s run on {engine}: write runtime.engine: {engine}")
        if self.kind is Kind.GENERATOR and self.limits.max_output_tokens is None:
            raise ValueError("a generator needs limits.max_output_tokens: set what it may write")
        for field, value, kind in (
            ("score_kind", self.score_kind, Kind.RERANKER),
            ("embedding_space", self.embedding_space, Kind.EMBEDDER),
            ("labels", self.labels, Kind.CLASSIFIER),
        ):
            if value and self.kind is not kind:
                raise ValueError(f"{field} is for {kind}s, and the kind is {self.kind}: remove it")
        return self


class Manifest(Identity):
    """A version of a model: its identity, what was read from its files, and every file with its
    size and sha256."""

    weights: Weights
    tokenizer: Tokenizer
    warmup: Warmup = Warmup()
    files: tuple[File, ...] = Field(max_length=MANIFEST_FILES)
    """Every file of the folder but the manifest itself."""

    @model_validator(mode="after")
    def _each_file_once(self) -> Self:
        paths = Counter(file.path for file in self.files)
        twice = sorted(path for path, count in paths.items() if count > 1)
        if twice:
            raise ValueError(f"files lists {twice[0]!r} twice: list each file once")
        if MANIFEST_NAME in paths:
            raise ValueError(f"files lists {MANIFEST_NAME}, which cannot hold its own hash")
        return self

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


def parse_manifest(data: bytes, where: str) -> Manifest:
    """Takes what JSON's own types say, so that the digest is of what was written: no "256" or
    256.0 for 256. Raises ArtifactError naming `where` it was read and the field."""
    require_bounded(len(data), MANIFEST_BYTES, where)
    try:
        manifest = Manifest.model_validate_json(data, strict=True)
        require_single_keys(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "manifest"
        said = first["msg"].removeprefix("Value error, ")
        raise ArtifactError(f"{where}: {field}: {said}: {_AGAIN}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where}: {error}: {_AGAIN}") from error
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Read `folder`/manifest.json. Raises ArtifactError naming the file and the field."""
    path = folder / MANIFEST_NAME
    try:
        data = read_bounded(path, MANIFEST_BYTES)
    except FileNotFoundError as error:
        raise ArtifactError(no_manifest(folder)) from error
    except OSError as error:
        raise ArtifactError(
            f"{path}: cannot be read: {error.strerror}: correct what the system says"
        ) from error
    return parse_manifest(data, str(path))
