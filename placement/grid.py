"""Sizes in steps of a grid, so that a knapsack table over them stays small.

Exact where the needs have a common divisor, as slots of an eighth of a device do. Else rounded: up
for a packing, which then fits; down for a bound, which then holds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from placement.problem import Vector

MOST_STEPS = (400, 50)
"""Of memory and of compute; a table has about their product of cells at most."""


class Grid(NamedTuple):
    """Of one kind of place. step: what a step is; size: in steps."""

    step: Vector
    size: Vector
    exact: bool

    def steps(self, need: Vector, *, up: bool) -> Vector:
        first, second = self.step
        if up:
            return -(-need[0] // first), -(-need[1] // second)
        return need[0] // first, need[1] // second


def grid(needs: Sequence[Vector | None], size: Vector) -> Grid:
    """needs: what may be put on a place of this size."""
    own = [need for need in needs if need is not None]
    memory, memory_exact = _step((need[0] for need in own), size[0], MOST_STEPS[0])
    compute, compute_exact = _step((need[1] for need in own), size[1], MOST_STEPS[1])
    return Grid(
        (memory, compute),
        (size[0] // memory, size[1] // compute),
        memory_exact and compute_exact,
    )


def _step(needs: Iterable[int], size: int, most: int) -> tuple[int, bool]:
    divisor = math.gcd(*needs)
    if divisor == 0:  # nobody needs any
        return size + 1, True
    if size // divisor <= most:
        return divisor, True
    return -(-size // most), False
