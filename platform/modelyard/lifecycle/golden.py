"""golden.json: prompts whose right answers are known, recorded when a version was packaged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from modelyard.artifacts.json_file import require_single_keys
from modelyard.artifacts.manifest import GOLDEN_NAME
from modelyard.contract.errors import ArtifactError
from modelyard.lifecycle.questions import (
    Frozen,
    GeneratorQuestion,
    RerankerQuestion,
    TextQuestion,
)

SCHEMA: Final = "modelyard/golden/v1"
_AGAIN: Final = "record it again with `python -m deployments.record`"

_Finite = Annotated[float, Field(allow_inf_nan=False)]
_Ids = Annotated[tuple[int, ...], Field(min_length=1)]


class GeneratorPrompt(GeneratorQuestion):
    """logprobs: of each expected token, in nats. logprob_tolerance: how far each may be off, and
    how near a tie must be for another token to be right as well."""

    prompt_token_ids: _Ids
    expected_token_ids: _Ids
    expected_text: str
    logprobs: tuple[_Finite, ...]
    logprob_tolerance: float = Field(default=0.5, gt=0, le=5)

    @model_validator(mode="after")
    def _a_logprob_for_each_token(self) -> Self:
        if len(self.logprobs) != len(self.expected_token_ids):
            raise ValueError("logprobs must hold one number for each of expected_token_ids")
        return self


class EmbedderPrompt(TextQuestion):
    token_ids: _Ids
    expected: tuple[_Finite, ...] = Field(min_length=1)
    min_cosine: float = Field(default=0.99, gt=0, le=1)


class ClassifierPrompt(TextQuestion):
    """expected: the probability of each label."""

    token_ids: _Ids
    expected: dict[str, _Finite] = Field(min_length=1)
    tolerance: float = Field(default=0.05, gt=0, le=1)


class RerankerPrompt(RerankerQuestion):
    """token_ids: of each input of the model, in its order. expected: a score per document."""

    token_ids: tuple[_Ids, ...]
    expected: tuple[_Finite, ...] = Field(min_length=1)
    tolerance: float = Field(default=0.05, gt=0, le=1)


class _Golden(Frozen):
    schema_: Literal["modelyard/golden/v1"] = Field(default=SCHEMA, alias="schema")


class GeneratorGolden(_Golden):
    kind: Literal["generator"] = "generator"
    prompts: tuple[GeneratorPrompt, ...] = Field(min_length=1)


class EmbedderGolden(_Golden):
    kind: Literal["embedder"] = "embedder"
    prompts: tuple[EmbedderPrompt, ...] = Field(min_length=1)


class ClassifierGolden(_Golden):
    kind: Literal["classifier"] = "classifier"
    prompts: tuple[ClassifierPrompt, ...] = Field(min_length=1)


class RerankerGolden(_Golden):
    kind: Literal["reranker"] = "reranker"
    prompts: tuple[RerankerPrompt, ...] = Field(min_length=1)


GoldenPrompt = GeneratorPrompt | EmbedderPrompt | ClassifierPrompt | RerankerPrompt
Golden = Annotated[
    GeneratorGolden | EmbedderGolden | ClassifierGolden | RerankerGolden,
    Field(discriminator="kind"),
]
_ADAPTER: Final[TypeAdapter[Golden]] = TypeAdapter(Golden)


def parse_golden(data: bytes, where: str) -> Golden:
    """Takes what JSON's own types say, as the manifest. Raises ArtifactError naming `where` it was
    read and the field."""
    try:
        golden = _ADAPTER.validate_json(data, strict=True)
        require_single_keys(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "golden"
        raise ArtifactError(f"{where}: {field}: {first['msg']}: {_AGAIN}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{where}: {error}: {_AGAIN}") from error
    return golden


def parse_golden_record(record: dict[str, Any]) -> Golden:
    """From plain values of our own making. Raises pydantic's ValidationError."""
    return _ADAPTER.validate_python(record)


def read_golden(folder: Path) -> Golden:
    """Read `folder`/golden.json. Raises ArtifactError naming the file and the field."""
    path = folder / GOLDEN_NAME
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{path}: {error.strerror}: fetch the model again") from error
    return parse_golden(data, str(path))


def write_golden(folder: Path, golden: Golden) -> None:
    """Write `folder`/golden.json: the same record has the same bytes, a line for each prompt."""
    record = golden.model_dump(mode="json", by_alias=True)
    prompts = ",\n".join(_line(prompt) for prompt in record.pop("prompts"))
    text = f'{_line(record)[:-1]},"prompts":[\n{prompts}\n]}}\n'
    (folder / GOLDEN_NAME).write_text(text, encoding="utf-8")


def _line(record: Any) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
