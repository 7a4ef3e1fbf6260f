"""What is asked of a version to know it: the questions of golden prompts, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from modelyard.contract.errors import ArtifactError
from modelyard.contract.operations import Kind

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ChatMessage(Frozen):
    role: Literal["system", "user", "assistant"]
    content: str


class GeneratorQuestion(Frozen):
    """Asked without sampling. max_tokens: as many as are compared."""

    id: Id
    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    max_tokens: int = Field(default=12, ge=1, le=64)


class TextQuestion(Frozen):
    """Of an embedder or a classifier."""

    id: Id
    text: str = Field(min_length=1)


class RerankerQuestion(Frozen):
    id: Id
    query: str = Field(min_length=1)
    documents: tuple[str, ...] = Field(min_length=1)


Question = GeneratorQuestion | TextQuestion | RerankerQuestion


def _chat(id: str, user: str, system: str | None = None) -> GeneratorQuestion:
    said = [] if system is None else [ChatMessage(role="system", content=system)]
    return GeneratorQuestion(id=id, messages=(*said, ChatMessage(role="user", content=user)))


_TEXTS: Final = (
    TextQuestion(id="short", text="Where is my order?"),
    TextQuestion(
        id="sentence",
        text="I was charged twice for the blue jacket, and I would like one payment back.",
    ),
    TextQuestion(id="digits", text="Order 4711-0815, 12.50 EUR, 3 pieces, 2026-11-30."),
    TextQuestion(id="accents", text="Gr\u00fc\u00dfe aus K\u00f6ln, \u00e0 bient\u00f4t!"),
)
# Words, a system message, digits and accents: each meets another part of a tokenizer or template.
DEFAULTS: Final[Mapping[Kind, tuple[Question, ...]]] = {
    Kind.GENERATOR: (
        _chat("capital", "The capital of France is"),
        _chat("system", "Where is my order?", "You are a support assistant. Answer in one line."),
        _chat("digits", "Count on: 1, 2, 3, 4, 5,"),
    ),
    Kind.EMBEDDER: _TEXTS,
    Kind.CLASSIFIER: _TEXTS,
    Kind.RERANKER: (
        RerankerQuestion(
            id="parcel",
            query="How do I send a parcel back?",
            documents=(
                "To return a parcel, print the label and bring it to a shop.",
                "Bananas are yellow.",
                "Our shops open at 9:00 and close at 18:30.",
            ),
        ),
        RerankerQuestion(
            id="digits",
            query="How much is 2 + 2?",
            documents=("2 + 2 = 4", "Paris is the capital of France."),
        ),
    ),
}
_OF_KIND: Final[Mapping[Kind, TypeAdapter[tuple[Question, ...]]]] = {
    Kind.GENERATOR: TypeAdapter(tuple[GeneratorQuestion, ...]),
    Kind.EMBEDDER: TypeAdapter(tuple[TextQuestion, ...]),
    Kind.CLASSIFIER: TypeAdapter(tuple[TextQuestion, ...]),
    Kind.RERANKER: TypeAdapter(tuple[RerankerQuestion, ...]),
}


def read_questions(path: Path, kind: Kind) -> tuple[Question, ...]:
    """A JSON list of questions of one kind. Raises ArtifactError naming the file and the field."""
    try:
        questions = _OF_KIND[kind].validate_json(path.read_bytes())
    except OSError as error:
        raise ArtifactError(f"{path}: {error.strerror}: check the path") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ArtifactError(f"{path}: {field}: {first['msg']}") from error
    if not questions:
        raise ArtifactError(f"{path}: it holds no question: write at least one")
    return questions
