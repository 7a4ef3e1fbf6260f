"""Requests to the small models: OpenAI's embeddings, Jina's and Cohere's rerank, vLLM's score and
classify. Fields that we do not read are ignored, as those APIs do; the ingress names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    model_validator,
)

from modelyard.contract.token_ids import MAX_TOKEN_IDS, count_items, is_token_ids

MAX_INPUTS: Final = 2048  # OpenAI's bound


def _known_truncation(value: int) -> int:
    if value < -1 or value == 0:
        raise ValueError("must be -1 (cut at the model's limit) or a number of tokens from 1 up")
    return value


def _text_or_tokens(value: Any) -> Any:
    """One sentence for a wrong `input`: pydantic's union would answer with one line per branch."""
    many = [value] if isinstance(value, str) else value
    if isinstance(many, list) and count_items(many) > MAX_TOKEN_IDS:
        raise ValueError(f"holds more than {MAX_TOKEN_IDS} token ids or texts: split the request")
    if not isinstance(many, list) or not _is_input_list(many):
        raise ValueError("must be text, a list of texts, token ids, or a list of token ids")
    if not many or "" in many or [] in many:
        raise ValueError("must hold at least one input, and no empty one")
    if len(many) > MAX_INPUTS and not is_token_ids(many):
        raise ValueError(f"holds {len(many)} inputs, at most {MAX_INPUTS}: split the request")
    return value


def _texts(value: Any) -> Any:
    many = [value] if isinstance(value, str) else value
    if not isinstance(many, list) or not _are_texts(many):
        raise ValueError("must be text or a list of texts")
    _check_count(many)
    return value


def _check_count(texts: list[Any]) -> None:
    if not texts:
        raise ValueError("is empty: send at least one text")
    if len(texts) > MAX_INPUTS:
        raise ValueError(f"holds {len(texts)} texts, at most {MAX_INPUTS}: split the request")


def _documents(value: Any) -> Any:
    """Strings, from the strings or `{text}` objects that the two APIs allow."""
    if not isinstance(value, list):
        raise ValueError("must be a list of texts, or of objects with the field text")
    _check_count(value)
    texts = [one.get("text") if isinstance(one, Mapping) else one for one in value]
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"item {index} must be text, or an object with the field text")
    return _texts(texts)


def _is_input_list(value: list[Any]) -> bool:
    return _are_texts(value) or is_token_ids(value) or all(map(is_token_ids, value))


def _are_texts(value: list[Any]) -> bool:
    return all(isinstance(one, str) for one in value)


Truncation = Annotated[int, AfterValidator(_known_truncation)]
# Plain: these functions have seen every item already, and pydantic would try a union's branches one
# by one on a million of them. Its types are left for mypy and for the OpenAPI description.
_Some = Field(min_length=1, max_length=MAX_INPUTS)
_Text = Annotated[str, Field(min_length=1)]
_Ids = Annotated[list[Annotated[int, Field(ge=0, lt=2**31)]], Field(min_length=1)]
_TextsSent = str | Annotated[list[str], _Some]
_InputSent = _Text | Annotated[list[_Text], _Some] | _Ids | Annotated[list[_Ids], _Some]
_DocumentsSent = Annotated[list[str | dict[str, Any]], _Some]
Texts = Annotated[_TextsSent, PlainValidator(_texts, json_schema_input_type=_TextsSent)]


class _Request(BaseModel):
    """`truncate_prompt_tokens` is vLLM's: over-long input is refused unless it asks for a cut."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    model: str = Field(min_length=1)
    user: str | None = None
    truncate_prompt_tokens: Truncation | None = None

    @model_validator(mode="before")
    @classmethod
    def _null_equals_absent(cls, record: Any) -> Any:
        if not isinstance(record, dict):
            return record
        return {name: value for name, value in record.items() if value is not None}


class EmbeddingsRequest(_Request):
    """POST /v1/embeddings. Token ids are the model's own, special tokens included."""

    input: Annotated[_InputSent, PlainValidator(_text_or_tokens, json_schema_input_type=_InputSent)]
    dimensions: int | None = Field(default=None, ge=1)
    encoding_format: Literal["float", "base64"] = "float"

    @property
    def texts(self) -> list[str] | None:
        """One for each embedding, or None when the input is token ids."""
        if isinstance(self.input, str):
            return [self.input]
        return [one for one in self.input if isinstance(one, str)] or None

    @property
    def token_ids(self) -> list[list[int]]:
        """One list for each embedding; empty when the input is text."""
        alone = [one for one in self.input if isinstance(one, int)]
        return [alone] if alone else [one for one in self.input if isinstance(one, list)]


class RerankRequest(_Request):
    """POST /v1/rerank and /v2/rerank. return_documents: None is the route's default."""

    query: str = Field(min_length=1)
    documents: Annotated[
        list[str], PlainValidator(_documents, json_schema_input_type=_DocumentsSent)
    ]
    top_n: int | None = Field(default=None, ge=0)  # vLLM's 0: all
    return_documents: bool | None = None
    max_tokens_per_doc: int | None = Field(default=None, ge=1)


class ScoreRequest(_Request):
    """POST /v1/score: text_1 with text_2, or queries with documents; 1 to 1, 1 to N or N to N."""

    text_1: Texts | None = None
    text_2: Texts | None = None
    queries: Texts | None = None
    documents: Texts | None = None

    @model_validator(mode="after")
    def _one_pair_of_fields(self) -> Self:
        every = ("text_1", "text_2", "queries", "documents")
        given = tuple(name for name in every if getattr(self, name) is not None)
        if given not in (every[:2], every[2:]):
            raise ValueError("send either text_1 and text_2, or queries and documents")
        if len(self.left) not in (1, len(self.right)):
            raise ValueError(
                f"{len(self.left)} texts against {len(self.right)}: send 1 to 1, 1 to N or N to N"
            )
        return self

    @property
    def fields(self) -> tuple[str, str]:
        """The names that the caller used for the two sides."""
        return ("text_1", "text_2") if self.text_1 is not None else ("queries", "documents")

    @property
    def left(self) -> list[str]:
        return _as_list(getattr(self, self.fields[0]))

    @property
    def right(self) -> list[str]:
        return _as_list(getattr(self, self.fields[1]))


class ClassifyRequest(_Request):
    """POST /v1/classify."""

    input: Texts

    @property
    def inputs(self) -> list[str]:
        return _as_list(self.input)


def _as_list(texts: str | list[str]) -> list[str]:
    return [texts] if isinstance(texts, str) else texts
