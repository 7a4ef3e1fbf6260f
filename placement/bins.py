"""Places being filled, those with equal contents kept as one row with a number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from placement.grouped import NO_LIMIT, Filled, Kind, Type

Integers = NDArray[np.int64]


def copies_that_fit(need: Integers, free: Integers) -> Integers:
    """Over the last axis, the two dimensions."""
    number = np.where(need > 0, free // np.maximum(need, 1), NO_LIMIT)
    fit: Integers = np.minimum(number[..., 0], number[..., 1])
    return fit


class Sizes:
    """As arrays. need: [type, kind, dimension]; far too much where it may not be."""

    def __init__(self, kinds: Sequence[Kind], types: Sequence[Type]) -> None:
        self.kinds, self.types = kinds, types
        self.need: Integers = np.array(
            [[need or (NO_LIMIT, NO_LIMIT) for need in type_.needs] for type_ in types], np.int64
        ).reshape(len(types), len(kinds), 2)
        self.size: Integers = np.array([kind.size for kind in kinds], np.int64).reshape(-1, 2)
        self.most: Integers = np.array([type_.most for type_ in types], np.int64)
        # Dividing by the size needs one that is not 0; a size of 0 holds only needs of 0.
        self.share = self.need / np.maximum(self.size, 1)


class Bins:
    """rows: what is free of `kind`, `count` times; a pattern each."""

    def __init__(self, sizes: Sizes, supply: Sequence[int]) -> None:
        self.sizes = sizes
        self.supply = list(supply)
        self.rows = 0
        self._free: Integers = np.zeros((64, 2), np.int64)
        self._kind: Integers = np.zeros(64, np.int64)
        self.count: list[int] = []
        self.pattern: list[dict[int, int]] = []

    @property
    def free(self) -> Integers:
        return self._free[: self.rows]

    @property
    def kind(self) -> Integers:
        return self._kind[: self.rows]

    def open(self, kind: int, pattern: dict[int, int], count: int) -> None:
        """`count` empty places of a kind, filled with a pattern."""
        self.supply[kind] -= count
        free = self.sizes.size[kind].copy()
        for type_, copies in pattern.items():
            free -= self.sizes.need[type_, kind] * copies
        self._add(kind, free, pattern, count)

    def copies(self, type_: int) -> Integers:
        """How many more of the type fit in each row, its cap aside."""
        need = self.sizes.need[type_][self.kind]
        return copies_that_fit(need, self.free)

    def put(self, row: int, type_: int, copies: int, demand: int) -> int:
        """Up to `copies` on each place of the row; how many of `demand` it took."""
        full, rest = divmod(demand, copies)
        if self.count[row] <= full:
            taken = self.count[row] * copies
            self.refill(row, {type_: copies}, self.count[row])
            return taken
        if full:
            self.refill(row, {type_: copies}, full)
        if rest:
            self.refill(row, {type_: rest}, 1)
        return demand

    def refill(self, row: int, more: dict[int, int], places: int) -> None:
        """`more` of several types on so many places of the row."""
        kind = int(self._kind[row])
        free, pattern = self._free[row].copy(), dict(self.pattern[row])
        for type_, copies in more.items():
            free -= self.sizes.need[type_, kind] * copies
            pattern[type_] = pattern.get(type_, 0) + copies
        self._split(row, free, pattern, places)

    def filled(self) -> list[Filled]:
        return [
            Filled(int(kind), tuple(sorted(pattern.items())), count)
            for kind, pattern, count in zip(self.kind, self.pattern, self.count, strict=True)
            if count and pattern
        ]

    def _split(self, row: int, free: Integers, pattern: dict[int, int], places: int) -> None:
        self.count[row] -= places
        if self.count[row]:
            self._add(int(self._kind[row]), free, pattern, places)
        else:
            # In place, so that first fit keeps its order.
            self._free[row], self.count[row], self.pattern[row] = free, places, pattern

    def _add(self, kind: int, free: Integers, pattern: dict[int, int], count: int) -> None:
        if self.rows == len(self._kind):
            self._free = np.concatenate([self._free, np.zeros_like(self._free)])
            self._kind = np.concatenate([self._kind, np.zeros_like(self._kind)])
        self._free[self.rows], self._kind[self.rows] = free, kind
        self.rows += 1
        self.count.append(count)
        self.pattern.append(pattern)
