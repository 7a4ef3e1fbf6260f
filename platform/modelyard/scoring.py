"""The maths of the small models, on torch tensors: pooling, and how a reranker scores.

Used by the shells that serve and by the recipes that measure, so that a measured figure is one of
the code that runs. Sums are in fp32 whatever the model's dtype: bf16 loses digits over 256 tokens.

Shapes: B texts, T tokens, H hidden size; masks are 1 for a token that counts, 0 for padding. B and
the leading size of a query may be 1 against many: both broadcast.
"""

from __future__ import annotations

import torch
from torch import Tensor

_TINY = 1e-9


def mean_pool(hidden: Tensor, mask: Tensor) -> Tensor:
    """[B, T, H] and [B, T] to [B, H]: the mean over the tokens that count; zero if none does."""
    weights = mask.unsqueeze(-1).to(torch.float32)
    return (hidden.to(torch.float32) * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=_TINY)


def normalise(vectors: Tensor) -> Tensor:
    """[..., H] to unit length along the last axis; a zero vector stays zero."""
    return torch.nn.functional.normalize(vectors.to(torch.float32), dim=-1, eps=_TINY)


def bi_encoder_scores(queries: Tensor, passages: Tensor) -> Tensor:
    """[B, H] pooled vectors each to [B]: relevance (1 + cosine) / 2, in [0, 1]."""
    return _relevance((normalise(queries) * normalise(passages)).sum(dim=-1))


def late_interaction_scores(
    queries: Tensor, query_mask: Tensor, passages: Tensor, passage_mask: Tensor
) -> Tensor:
    """[B, Q, H], [B, Q], [B, T, H], [B, T] token vectors to [B]: relevance (1 + MaxSim) / 2.

    MaxSim here is the mean over the query's tokens, not ColBERT's sum, of the best cosine that the
    token finds in the passage: a sum grows with the length of the query and has no bound.
    A passage without tokens scores 0.
    """
    cosines = normalise(queries) @ normalise(passages).transpose(-1, -2)
    cosines = cosines.masked_fill(passage_mask.unsqueeze(-2) == 0, -1.0)
    best = cosines.max(dim=-1).values
    weights = query_mask.to(torch.float32)
    return _relevance((best * weights).sum(dim=-1) / weights.sum(dim=-1).clamp(min=_TINY))


def cross_encoder_scores(logits: Tensor) -> Tensor:
    """[B] or [B, 1] logits to [B]: the sigmoid, in [0, 1]."""
    flat = logits.squeeze(-1) if logits.dim() == 2 else logits
    return torch.sigmoid(flat.to(torch.float32))


def _relevance(cosine: Tensor) -> Tensor:
    # Rounding can put the cosine of a text with itself a little above 1.
    return ((1.0 + cosine) / 2.0).clamp(0.0, 1.0)
