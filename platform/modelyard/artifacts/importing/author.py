"""What the person who imports says of a version; None leaves it to what the files say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError

from modelyard.artifacts.manifest import ComputeDtype, Identity, ScoreKind
from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind


@dataclass(frozen=True, slots=True)
class Author:
    """name, version: of the artifact. source: where it came from, in words. The others are the
    manifest's fields of the same name. Raises ArtifactError for a name or version that a manifest
    cannot have: they become a path, before there is a manifest."""

    name: str
    version: str
    kind: Kind | None = None
    license: str | None = None
    source: str | None = None
    max_context_tokens: int | None = None
    max_output_tokens: int | None = None
    drain_s: float | None = None
    dtype: ComputeDtype | None = None
    accelerators: int | None = None
    min_memory_gb: float | None = None
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    score_kind: ScoreKind | None = None
    embedding_space: str | None = None

    def __post_init__(self) -> None:
        for field, value in (("name", self.name), ("version", self.version)):
            allowed: TypeAdapter[Any] = TypeAdapter(Annotated[str, Identity.model_fields[field]])
            try:
                allowed.validate_python(value)
            except ValidationError as error:
                message = error.errors(include_url=False)[0]["msg"]
                raise ArtifactError(f"--{field} {value!r}: {message}") from error
