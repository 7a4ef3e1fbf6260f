"""Prompts of a wanted length, without a tokenizer of the model under test.

Common short English words are about one token each in every vocabulary in use. What a request
really had is taken from the answer's usage, and reported.
"""

from __future__ import annotations

import random
from typing import Final

_WORDS: Final = (
    "the of and to in a is that for it as was with be by on not he his but at are this have from "
    "or had an they which one you were all her she there would their we him been has when who will "
    "no more if out so up said what its about than into them can only other time new some could "
    "these two may first then do any like my now over such our man me even most made after also "
    "well did many before must years back through much where your way down should because long "
    "each just state those people too how little good world make very year still see work life "
    "being day right house water place again old while number part turn real leave might want "
    "point form off child few small since against ask late home large person end open public "
    "follow during present without hold around head word case face group system question power"
).split()
_POOL: Final = 1 << 15


class Texts:
    """Slices of one long text. A slice costs little, so that the sender is not late for it."""

    def __init__(self, seed: int) -> None:
        self._pool = random.Random(f"{seed}:text").choices(_WORDS, k=_POOL)
        self._seed = seed

    def of(self, number: int, sizes: list[int]) -> list[str]:
        """Texts of so many words for the request of that number, always the same ones."""
        rng = random.Random(f"{self._seed}:{number}:text")
        return [self._slice(rng.randrange(_POOL), size) for size in sizes]

    def prefix(self, size: int) -> str:
        """The text that all requests with a shared prefix of that size begin with."""
        return self._slice(0, size)

    def _slice(self, begin: int, size: int) -> str:
        words = self._pool[begin : begin + size]
        while len(words) < size:
            words += self._pool[: size - len(words)]
        return " ".join(words)
