"""What a drawing of a place is made of."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final

from placement.free import Free
from placement.problem import Problem

# Told apart with the common kinds of colour blindness (Okabe and Ito 2008), without black.
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_LETTERS: Final = string.ascii_uppercase + string.ascii_lowercase


@dataclass(frozen=True, slots=True)
class Segment:
    """An item at a place. amount: of all its replicas there, in the place's first size."""

    item: str
    replicas: int
    amount: int


def segments_of(problem: Problem, one: Free) -> list[Segment]:
    """The largest first."""
    pool = one.place.pool
    found = [
        Segment(h.item, h.replicas, problem.item[h.item].needs[pool][0] * h.replicas)
        for h in one.held
    ]
    return sorted(found, key=lambda segment: (-segment.amount, segment.item))


def colour_of(index: int) -> str:
    return COLOURS[index % len(COLOURS)]


def marks_of(problem: Problem) -> dict[str, tuple[str, str]]:
    """A letter and a terminal style for each item, by name; after 52 of them letters repeat."""
    return {
        name: (_LETTERS[index % len(_LETTERS)], f"{colour_of(index)}")
        for index, name in enumerate(sorted(problem.item))
    }
