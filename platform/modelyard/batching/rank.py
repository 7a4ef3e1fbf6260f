"""The three ways of a reranker: cross-encoder, bi-encoder, late interaction. Scores in [0, 1]."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

import torch
from torch import Tensor

from modelyard.artifacts.manifest import ScoreKind
from modelyard.batching.batcher import Batcher
from modelyard.batching.encode import Encoder, not_finite
from modelyard.batching.tokens import Tokens
from modelyard.scoring import (
    bi_encoder_scores,
    cross_encoder_scores,
    late_interaction_scores,
    mean_pool,
)

QUERIES_AT_ONCE: Final = 32  # 6 MB of vectors of 256 tokens in 384 dimensions


class RankInput(NamedTuple):
    """A text or pair to run. query: token vectors [Q, H] to score it against (late interaction)."""

    tokens: Tokens
    query: Tensor | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """What to score: one or as many `left` as `right`; `fields` are their names in the request.

    cut: truncate_prompt_tokens. most: max_tokens_per_doc, for `right`.
    """

    left: Sequence[str]
    right: Sequence[str]
    fields: tuple[str, str]
    cut: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Pairs:
    """Tokenised. `left` is empty where each of `right` holds both texts."""

    left: list[Tokens]
    right: list[Tokens]

    @property
    def count_tokens(self) -> int:
        return sum(len(one.ids) for one in (*self.left, *self.right))


class Ranker(ABC):
    """compute() is the batcher's; scores() runs one request through it."""

    HEAD: ClassVar[bool] = False

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def tokenize(self, texts: Texts) -> Pairs:
        """Blocks. Raises InvalidRequest for over-long texts."""
        tokenizer = self._encoder.tokenizer
        left, right = texts.fields
        return Pairs(
            tokenizer.texts(texts.left, left, texts.cut),
            tokenizer.texts(texts.right, right, texts.cut, texts.most),
        )

    @abstractmethod
    def compute(self, batch: Sequence[RankInput]) -> list[Tensor | Exception]:
        """Blocks. What one input gives: its score, or its vectors."""

    @abstractmethod
    async def scores(self, batcher: Batcher[RankInput, Tensor], pairs: Pairs) -> list[float]:
        """One score in [0, 1] for each of `pairs.right`."""


class CrossEncoder(Ranker):
    """Query and passage in one input, one logit: the most exact, and nothing can be kept of it."""

    HEAD = True

    def tokenize(self, texts: Texts) -> Pairs:
        tokenizer = self._encoder.tokenizer
        return Pairs(
            [], tokenizer.pairs(texts.left, texts.right, texts.fields, texts.cut, texts.most)
        )

    def compute(self, batch: Sequence[RankInput]) -> list[Tensor | Exception]:
        logits = self._encoder.logits([one.tokens for one in batch])
        return _finite_or_errors(cross_encoder_scores(logits))

    async def scores(self, batcher: Batcher[RankInput, Tensor], pairs: Pairs) -> list[float]:
        return _floats(await _submit(batcher, pairs.right))


class BiEncoder(Ranker):
    """The cosine of pooled vectors. Query and passages share one batch: scoring comes after it."""

    def compute(self, batch: Sequence[RankInput]) -> list[Tensor | Exception]:
        with torch.inference_mode():
            return _finite_or_errors(
                mean_pool(*self._encoder.hidden([one.tokens for one in batch])).cpu()
            )

    async def scores(self, batcher: Batcher[RankInput, Tensor], pairs: Pairs) -> list[float]:
        vectors = await _submit(batcher, [*pairs.left, *pairs.right])
        split = len(pairs.left)
        with torch.inference_mode():
            scores = bi_encoder_scores(torch.stack(vectors[:split]), torch.stack(vectors[split:]))
        return scores.tolist()


class LateInteraction(Ranker):
    """MaxSim over token vectors. The query runs first, and each passage is scored in its own batch:
    to keep the vectors of 2048 passages until the end would take a gigabyte. As many queries would
    take 400 MB, so they run some at a time."""

    def compute(self, batch: Sequence[RankInput]) -> list[Tensor | Exception]:
        with torch.inference_mode():
            hidden, mask = self._encoder.hidden([one.tokens for one in batch])
            results: list[Tensor | Exception] = [
                row[: len(one.tokens.ids)].clone() for one, row in zip(batch, hidden, strict=True)
            ]
            for query, rows in _by_query(batch):
                everything = torch.ones(1, len(query), device=mask.device)
                scored = late_interaction_scores(query[None], everything, hidden[rows], mask[rows])
                for row, result in zip(rows, _finite_or_errors(scored), strict=True):
                    results[row] = result
        return results

    async def scores(self, batcher: Batcher[RankInput, Tensor], pairs: Pairs) -> list[float]:
        if len(pairs.left) == 1:
            query = await _submit(batcher, pairs.left)
            return _floats(await _submit(batcher, pairs.right, query * len(pairs.right)))
        scores: list[float] = []
        for start in range(0, len(pairs.left), QUERIES_AT_ONCE):
            some = slice(start, start + QUERIES_AT_ONCE)
            queries = await _submit(batcher, pairs.left[some], first=start)
            passages = await _submit(batcher, pairs.right[some], queries, first=start)
            scores += _floats(passages)
        return scores


RANKERS: Final[dict[ScoreKind, type[Ranker]]] = {
    "cross-encoder": CrossEncoder,
    "bi-encoder": BiEncoder,
    "late-interaction": LateInteraction,
}


async def _submit(
    batcher: Batcher[RankInput, Tensor],
    texts: Sequence[Tokens],
    queries: Sequence[Tensor | None] | None = None,
    first: int = 0,
) -> list[Tensor]:
    inputs = map(RankInput, texts, queries or [None] * len(texts))
    return await batcher.submit_all([(one, len(one.tokens.ids)) for one in inputs], "text", first)


def _by_query(batch: Sequence[RankInput]) -> list[tuple[Tensor, list[int]]]:
    """The rows of a batch that share a query, which most do: one product for all of them."""
    rows: dict[int, list[int]] = defaultdict(list)
    for index, one in enumerate(batch):
        if one.query is not None:
            rows[id(one.query)].append(index)
    return [
        (query, group) for group in rows.values() if (query := batch[group[0]].query) is not None
    ]


def _finite_or_errors(rows: Tensor) -> list[Tensor | Exception]:
    """[B] or [B, N] as B tensors, with an error in place of each that is not finite."""
    finite = torch.isfinite(rows).reshape(len(rows), -1).all(dim=-1).tolist()
    return [row if good else not_finite() for row, good in zip(rows, finite, strict=True)]


def _floats(scores: Sequence[Tensor]) -> list[float]:
    return torch.stack(list(scores)).tolist()
