"""Lengths of recorded requests, for the experiments with predicted ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from heapq import merge
from pathlib import Path
from statistics import fmean
from typing import Final

from modelyard.workload.trace import read_trace


@dataclass(frozen=True, slots=True)
class Length:
    """tenant: the name of the file it came from."""

    tenant: str
    prompt_tokens: int
    output_tokens: int


NOTHING_KNOWN: Final = Length("tenant", 0, 0)


@dataclass(frozen=True, slots=True)
class Lengths:
    """In the order in which they came; what follows the last is the first."""

    lengths: tuple[Length, ...]
    mean_output: float

    def __getitem__(self, number: int) -> Length:
        return self.lengths[number % len(self.lengths)]

    def __len__(self) -> int:
        return len(self.lengths)


@lru_cache(maxsize=4)
def read_lengths(traces: tuple[Path, ...]) -> Lengths:
    """Of several traces as one, each a tenant of its own. Raises ConfigError."""
    in_order = merge(
        *(
            [(one.offset_s, number, one) for one in read_trace(path).requests]
            for number, path in enumerate(traces)
        ),
        key=lambda row: row[:2],
    )
    lengths = tuple(
        Length(traces[number].stem, one.input_tokens, one.output_tokens)
        for _, number, one in in_order
    )
    return Lengths(lengths, fmean(one.output_tokens for one in lengths))
