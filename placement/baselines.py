"""What others do, to compare with: one replica after the other, one kind of place.

Ray's two schedulers as its source has them (python/ray/serve/_private/deployment_scheduler.py,
2.60): by default the emptiest node that fits; with RAY_SERVE_USE_PACK_SCHEDULING_STRATEGY the
largest replica first, into the node with the least left, both compared resource by resource: the
GPU share first, which is our compute, and memory on the device after it, a resource of our own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from placement.problem import Vector

Choice = Callable[[NDArray[np.int64]], int]
"""Which of the places that fit, given what is free at each."""


def first_fit(free: NDArray[np.int64]) -> int:
    return 0


def emptiest(free: NDArray[np.int64]) -> int:
    """Spread: the worst fit, by the sum of both shares (of one size, so any unit will do)."""
    return int((free / np.maximum(free.max(axis=0), 1)).sum(axis=1).argmax())


def lexicographic_best(free: NDArray[np.int64]) -> int:
    return int(np.lexsort((free[:, 0], free[:, 1]))[0])


def places_used(needs: Sequence[Vector], size: Vector, choice: Choice) -> int:
    """In this order; a place is opened only where none in use fits."""
    free = np.zeros((len(needs), 2), np.int64)
    used = 0
    for need in needs:
        fits = np.flatnonzero((free[:used] >= need).all(axis=1))
        if len(fits):
            place = int(fits[choice(free[fits])])
        else:
            place = used
            free[place] = size
            used += 1
        free[place] -= need
    return used


BASELINES: dict[str, tuple[Choice, bool]] = {
    "first fit, as they come": (first_fit, False),
    "Ray's spread": (emptiest, False),
    "Ray's PACK": (lexicographic_best, True),
    "first fit decreasing": (first_fit, True),
}
"""How each chooses, and whether it takes the largest first."""
