"""What a job gets back. Each names the version that answered and the tokens that it cost."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from modelyard.contract.envelope import Usage
from modelyard.contract.reply import Reply

A = TypeVar("A", bound="Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """model_version: `name@version`. usage: tokens as the engine counted them."""

    id: str
    model_version: str
    usage: Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation(Answer):
    text: str

    @property
    def finish_reason(self) -> str:
        """`stop`, or `length` when max_output_tokens cut it."""
        return self.usage.finish_reason


class Chunk(NamedTuple):
    """A piece of a stream. The last one has no text and holds the whole answer in `final`."""

    text: str
    final: Generation | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Embeddings(Answer):
    """vectors: one row a text, in the order they were sent; float32, (texts, dimensions)."""

    vectors: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Classes(Answer):
    """The most probable label of each text; probabilities in the model's order of labels.

    probabilities: float32, (texts, labels).
    """

    labels: list[str]
    probabilities: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Answer):
    """Documents best first: `order` are their places in the request, `scores` in [0, 1]."""

    order: list[int]
    scores: list[float]


def generation(reply: Reply) -> Generation:
    return _answer(Generation, reply, text=json.loads(reply.data)["output"])


def streamed(reply: Reply, text: str) -> Generation:
    return _answer(Generation, reply, text=text)


def embeddings(reply: Reply) -> Embeddings:
    """Of an answer in base64, which is a quarter of the bytes of floats as digits."""
    rows = [
        np.frombuffer(base64.b64decode(item["embedding"]), dtype="<f4")
        for item in json.loads(reply.data)["data"]
    ]
    return _answer(Embeddings, reply, vectors=np.stack(rows))


def classes(reply: Reply) -> Classes:
    items = json.loads(reply.data)["data"]
    return _answer(
        Classes,
        reply,
        labels=[item["label"] for item in items],
        probabilities=np.array([item["probs"] for item in items], dtype=np.float32),
    )


def ranking(reply: Reply) -> Ranking:
    results = json.loads(reply.data)["results"]
    return _answer(
        Ranking,
        reply,
        order=[result["index"] for result in results],
        scores=[result["relevance_score"] for result in results],
    )


def _answer(make: Callable[..., A], reply: Reply, **fields: Any) -> A:
    return make(id=reply.answer_id, model_version=reply.model_version, usage=reply.usage, **fields)
