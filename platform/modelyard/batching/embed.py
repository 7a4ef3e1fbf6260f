"""Sentence embeddings: mean pooled, of unit length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from modelyard.batching.encode import Encoder, rows_or_errors
from modelyard.batching.tokens import Tokens
from modelyard.scoring import mean_pool, normalise

Vector = list[float]


class EmbedInput(NamedTuple):
    """dimensions: keep the first so many, and make them unit length again. None keeps all."""

    tokens: Tokens
    dimensions: int | None = None


def embed(encoder: Encoder, batch: Sequence[EmbedInput]) -> list[Vector | Exception]:
    """A vector of fp32 values for each input, or the error of that input."""
    with torch.inference_mode():
        pooled = mean_pool(*encoder.hidden([one.tokens for one in batch])).cpu()
        vectors = rows_or_errors(normalise(pooled))
        for index, one in enumerate(batch):
            if one.dimensions is not None:
                kept = pooled[index : index + 1, : one.dimensions]
                vectors[index] = rows_or_errors(normalise(kept))[0]
    return vectors
