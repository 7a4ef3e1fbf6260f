"""The run in slices of time, warm-up too: how it went, where the figures say how it was."""

from __future__ import annotations

from dataclasses import dataclass, field

from modelyard.bench.histogram import COARSE, LatencyHistogram

MAX_SLICES = 300


@dataclass(slots=True)
class Slice:
    """Requests that were due in one interval."""

    offered: int = 0
    good: int = 0
    refused: int = 0
    failed: int = 0
    e2e: LatencyHistogram = field(default_factory=lambda: LatencyHistogram(COARSE))

    def add(self, other: Slice) -> None:
        self.offered += other.offered
        self.good += other.good
        self.refused += other.refused
        self.failed += other.failed
        self.e2e.add(other.e2e)


@dataclass(slots=True)
class Timeline:
    """interval_s: the length of a slice. slices: by number, from 0; those without requests lack."""

    interval_s: float
    slices: dict[int, Slice] = field(default_factory=dict)

    @classmethod
    def of(cls, duration_s: float) -> Timeline:
        return cls(max(1.0, duration_s / MAX_SLICES))

    def at(self, offset_s: float) -> Slice:
        return self.slices.setdefault(int(offset_s / self.interval_s), Slice())

    def add(self, other: Timeline) -> None:
        """Raises ValueError for another interval: the slices would not be the same times."""
        if self.interval_s != other.interval_s:
            raise ValueError("the runs have different durations: merge runs of one duration")
        for number, piece in other.slices.items():
            self.slices.setdefault(number, Slice()).add(piece)
