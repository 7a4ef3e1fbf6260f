"""A histogram in the result file: its usual percentiles to read, and itself to merge."""

from __future__ import annotations

from typing import Final, Self

from modelyard.bench.histogram import FINE, LatencyHistogram
from modelyard.config.frozen import Frozen

PERCENTS: Final = {
    "p50_ms": 50.0,
    "p90_ms": 90.0,
    "p95_ms": 95.0,
    "p99_ms": 99.0,
    "p99_9_ms": 99.9,
    "max_ms": 100.0,
}


class LatencyRecord(Frozen):
    """Milliseconds, None of nothing. histogram: HdrHistogram's base64, in microseconds."""

    count: int
    mean_ms: float | None
    p50_ms: float | None
    p90_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    p99_9_ms: float | None
    max_ms: float | None
    histogram: str

    @classmethod
    def of(cls, histogram: LatencyHistogram) -> Self:
        times = histogram.percentiles_ms(*PERCENTS.values())
        return cls(
            count=histogram.count,
            mean_ms=histogram.mean_ms(),
            histogram=histogram.encode(),
            **dict(zip(PERCENTS, times, strict=True)),
        )

    def decoded(self, digits: int = FINE) -> LatencyHistogram:
        """Raises ConfigError."""
        return LatencyHistogram.decode(self.histogram, digits)
