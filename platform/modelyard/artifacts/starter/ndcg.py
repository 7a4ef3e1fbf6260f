"""nDCG: how close a ranking is to the best one, with graded relevance."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2


def ndcg(relevance: Sequence[int], scores: Sequence[float], k: int) -> float:
    """nDCG@k in [0, 1], with gain 2^relevance - 1 and discount log2(rank + 1).

    relevance[i] and scores[i] belong to passage i. Equal scores count against the ranking: the less
    relevant passage is put first, so that a scorer cannot gain from the order of the file. Raises
    ValueError when the lengths differ or no passage is relevant (the figure is then undefined).
    """
    if len(relevance) != len(scores):
        raise ValueError(f"{len(relevance)} grades for {len(scores)} scores: give one for each")
    ranked = [
        grade
        for _, grade in sorted(zip(scores, relevance, strict=True), key=lambda p: (-p[0], p[1]))
    ]
    best = _gain(sorted(relevance, reverse=True), k)
    if best == 0:
        raise ValueError("no passage is relevant: leave such a set out")
    return _gain(ranked, k) / best


def _gain(ranked: Sequence[int], k: int) -> float:
    return sum((2.0**grade - 1.0) / log2(rank + 2) for rank, grade in enumerate(ranked[:k]))
