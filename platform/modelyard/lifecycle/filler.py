"""Plain text of an exact number of tokens, never the same twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_NUMBERS_AT_ONCE: Final = 256


class Filler:
    """filler(n) gives n token ids. Numbers, counted on from call to call: a prefix cache that knew
    the last prompt would skip the work that a warm-up is for.

    encode: text to token ids, without special tokens; at least one token for some number.
    """

    def __init__(self, encode: Callable[[str], list[int]]) -> None:
        self._encode = encode
        self._next = 0

    def __call__(self, tokens: int) -> list[int]:
        ids: list[int] = []
        while len(ids) < tokens:
            numbers = range(self._next, self._next + _NUMBERS_AT_ONCE)
            self._next += _NUMBERS_AT_ONCE
            ids += self._encode(" ".join(map(str, numbers)))
        return ids[:tokens]
