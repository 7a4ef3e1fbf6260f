"""The most valuable content of one place: a bounded knapsack in two dimensions.

Dynamic programming over the free room (Gilmore & Gomory, "A linear programming approach to the
cutting-stock problem", Operations Research 9(6), 1961), in 64-bit integers: the value is exact, so
that it can prove a bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from placement.problem import Vector

Table = NDArray[np.int64]
"""[free memory, free compute] -> the most that still fits there is worth."""


class Choice(NamedTuple):
    """Of a type: its need in steps of the grid, its worth, and how many are allowed at most."""

    type: int
    need: Vector
    value: int
    most: int


class _Lot(NamedTuple):
    choice: Choice
    copies: int
    taken: NDArray[np.bool_]


def best_pattern(choices: Sequence[Choice], size: Vector) -> tuple[int, dict[int, int]]:
    """The greatest value that fits in `size`, and the copies of each type that give it."""
    table: Table = np.zeros((size[0] + 1, size[1] + 1), np.int64)
    lots = [
        _Lot(choice, copies, _take(table, choice, copies))
        for choice in choices
        for copies in _lots(choice, size)
    ]
    chosen: dict[int, int] = {}
    memory, compute = size
    for choice, copies, taken in reversed(lots):
        need = choice.need[0] * copies, choice.need[1] * copies
        if memory >= need[0] and compute >= need[1] and taken[memory - need[0], compute - need[1]]:
            chosen[choice.type] = chosen.get(choice.type, 0) + copies
            memory, compute = memory - need[0], compute - need[1]
    return int(table[size]), chosen


def worth(choices: Sequence[Choice], size: Vector) -> Table:
    """The whole table: what each free room could still hold."""
    table: Table = np.zeros((size[0] + 1, size[1] + 1), np.int64)
    for choice in choices:
        for copies in _lots(choice, size):
            _take(table, choice, copies)
    return table


def _take(table: Table, choice: Choice, copies: int) -> NDArray[np.bool_]:
    memory, compute = choice.need[0] * copies, choice.need[1] * copies
    rows, columns = table.shape
    above = table[memory:, compute:]
    candidate = table[: rows - memory, : columns - compute] + choice.value * copies
    taken = candidate > above
    np.maximum(above, candidate, out=above)
    return taken


def _lots(choice: Choice, size: Vector) -> list[int]:
    """1, 2, 4, ... and a rest: any number of copies up to the most that fit is a sum of lots."""
    left = min(
        [choice.most] + [have // need for have, need in zip(size, choice.need, strict=True) if need]
    )
    lots, copies = [], 1
    while left > 0:
        lots.append(min(copies, left))
        left -= copies
        copies *= 2
    return lots
