"""The sum of what is needed: the quickest bound."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

from placement.grouped import Kind, Type


def least_price(kinds: Sequence[Kind], types: Sequence[Type]) -> int:
    """A replica pays at least its share of one dimension of the place where that costs least: the
    greater of memory and compute, over all of them."""

    def total(dimension: int) -> Fraction:
        return sum(
            (
                type_.replicas
                * min(
                    Fraction(kind.price * need[dimension], max(kind.size[dimension], 1))
                    for kind, need in zip(kinds, type_.needs, strict=True)
                    if need is not None
                )
                for type_ in types
            ),
            Fraction(0),
        )

    return ceil(max(total(0), total(1)))
