"""Whether a shadow copy answers as the request it copies did."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from modelyard.contract.operations import OPERATIONS_OF, Kind, Operation
from modelyard.ingress.answer_text import WRONG_SHAPE, text_of

SAME_DIRECTION: Final = 0.99  # the cosine from which two vectors of one space are the same answer


def same(
    operation: Operation, one: bytes, other: bytes, *, stream: bool, greedy: bool
) -> bool | None:
    """Whether `other` answers as `one` does; None where nobody can say.

    A generator's texts, where both were made greedily; the labels of a classifier; the order of
    what a reranker was given, if there were two to order; the directions of vectors, which are of
    one space. `other` of another shape is not the same; of `one`, nobody can say.
    """
    if operation in OPERATIONS_OF[Kind.GENERATOR] and not greedy:
        return None
    try:
        expected = _compared(operation, one, stream=stream)
    except ValueError:
        return None
    if expected is None:
        return None
    try:
        given = _compared(operation, other, stream=stream)
    except ValueError:
        return False
    if operation is Operation.EMBED:
        return _same_directions(expected, given)
    return bool(given == expected)


def _compared(operation: Operation, data: bytes, *, stream: bool) -> Any:
    if operation in OPERATIONS_OF[Kind.GENERATOR]:
        return text_of(operation, data, stream=stream)
    try:
        return _SMALL[operation](json.loads(data))
    except WRONG_SHAPE as error:
        raise ValueError(f"the bytes are no answer of {operation}") from error


def _labels(record: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row["label"] for row in record["data"])


def _ranking(record: Mapping[str, Any]) -> tuple[int, ...] | None:
    order = tuple(row["index"] for row in record["results"])
    return order if len(order) > 1 else None


def _score_order(record: Mapping[str, Any]) -> tuple[int, ...] | None:
    scores = [float(row["score"]) for row in record["data"]]
    order = sorted(range(len(scores)), key=lambda index: (-scores[index], index))
    return tuple(order) if len(order) > 1 else None


def _vectors(record: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
    rows = (row["embedding"] for row in record["data"])
    return [
        np.frombuffer(base64.b64decode(row), "<f4") if isinstance(row, str) else np.asarray(row)
        for row in rows
    ]


def _same_directions(some: list[Any], others: list[Any]) -> bool:
    if [one.shape for one in some] != [one.shape for one in others]:
        return False
    norms = (np.linalg.norm(a) * np.linalg.norm(b) for a, b in zip(some, others, strict=True))
    products = (float(a @ b) for a, b in zip(some, others, strict=True))
    return all(dot >= SAME_DIRECTION * norm for dot, norm in zip(products, norms, strict=True))


_SMALL: Final[Mapping[Operation, Callable[[Any], Any]]] = {
    Operation.EMBED: _vectors,
    Operation.CLASSIFY: _labels,
    Operation.RERANK: _ranking,
    Operation.SCORE: _score_order,
}
