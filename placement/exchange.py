"""Contents that a place could have instead of its own, a few replicas out and others in.

The columns of placement.neighbourhood. Which replicas best fill the room that is left is a knapsack
of two dimensions, solved once for every room that a place can leave: replicas repeat, so few items
are many replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd
from typing import Final

import numpy as np
from numpy.typing import NDArray

from placement.problem import Vector

# So many steps of memory at most: sizes are rounded, up for needs and down for rooms, beyond it.
STEPS: Final = 160
OUT: Final = 2  # replicas that leave a place that stays in use

Content = tuple[tuple[str, int], ...]
"""(item, replicas), in order."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A place's new content, and how many of its replicas leave for it."""

    place: str
    content: Content
    moves: int


class Knapsack:
    """The most that items are worth in a room, each as often as one likes."""

    def __init__(self, needs: Mapping[str, Vector], worth: Mapping[str, float], size: Vector):
        """needs, size: as in placement.problem, of the items that may be there."""
        self._unit = _unit([need[0] for need in needs.values()], size[0])
        self._needs = needs
        shape = (size[0] // self._unit + 1, size[1] + 1)
        self._best: NDArray[np.float64] = np.zeros(shape)
        self._choice: NDArray[np.int32] = np.full(shape, -1, dtype=np.int32)
        self._items = sorted(item for item in needs if worth[item] > 1e-9)
        for index, item in enumerate(self._items):
            self._allow(index, worth[item], -(-needs[item][0] // self._unit), needs[item][1])

    def _allow(self, index: int, worth: float, rows: int, columns: int) -> None:
        best, choice = self._best, self._choice
        if rows < 1 or columns >= best.shape[1]:
            return
        for row in range(rows, best.shape[0]):
            with_it = best[row - rows, : best.shape[1] - columns] + worth
            better = with_it > best[row, columns:] + 1e-12
            best[row, columns:][better] = with_it[better]
            choice[row, columns:][better] = index

    def worth(self, room: Vector) -> float:
        return float(self._best[room[0] // self._unit, room[1]])

    def items(self, room: Vector) -> Iterator[str]:
        """What that worth consists of."""
        row, column = room[0] // self._unit, room[1]
        while (index := int(self._choice[row, column])) >= 0:
            item = self._items[index]
            yield item
            row -= -(-self._needs[item][0] // self._unit)
            column -= self._needs[item][1]


def exchanges(
    place: str,
    before: Mapping[str, int],
    room: Vector,
    needs: Mapping[str, Vector],
    sack: Knapsack,
) -> Iterator[Exchange]:
    """For each few replicas out of what was there before, what best fills the room.

    room: for all of it, before included. needs: of whatever may be there.
    """
    flat = [item for item, count in sorted(before.items()) for _ in range(count)]
    for k in range(OUT + 1):
        for out in sorted(set(combinations(flat, k))):
            content = Counter(before)
            content.subtract(out)
            memory = room[0] - sum(needs[item][0] * count for item, count in content.items())
            compute = room[1] - sum(needs[item][1] * count for item, count in content.items())
            content.update(sack.items((memory, compute)))
            yield exchange(place, before, content)


def exchange(place: str, before: Mapping[str, int], content: Mapping[str, int]) -> Exchange:
    """From its two contents."""
    left = sum(max(count - content.get(item, 0), 0) for item, count in before.items())
    return Exchange(place, tuple(sorted((i, n) for i, n in content.items() if n)), left)


def _unit(memory: Sequence[int], size: int) -> int:
    """Exact where sizes have a common measure that is not too small."""
    return max(gcd(size, *memory), -(-size // STEPS), 1)
