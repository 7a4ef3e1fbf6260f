"""What a metric family is: a name, labels, and how its samples are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from prometheus_client import Metric

from modelyard.telemetry.histogram import Histogram

PREFIX: Final = "modelyard_"
# Every label there is (design section 5). `tenant` belongs to one family, bounded by TopN.
LABELS: Final = frozenset(
    "model version arm route tier priority code finish_reason phase cause kind reason gate "
    "direction replica node app digest tenant release device rollout area".split()
)


@dataclass(frozen=True, slots=True)
class Family:
    """`name` is without prefix and without the `_total` of a counter."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        return PREFIX + self.name

    @property
    def series(self) -> tuple[str, ...]:
        """The names under which its samples are exported."""
        if self.kind == "histogram":
            return tuple(f"{self.full_name}_{part}" for part in ("bucket", "sum", "count"))
        return (f"{self.full_name}_total",) if self.kind == "counter" else (self.full_name,)

    def metric(self, values: Iterable[tuple[tuple[str, ...], float]]) -> Metric:
        """A counter or gauge: for label values in the order of `labels`, a number."""
        made = Metric(self.full_name, self.help, self.kind)
        for labels, value in values:
            made.add_sample(self.series[0], dict(zip(self.labels, labels, strict=True)), value)
        return made

    def histogram(self, values: Iterable[tuple[tuple[str, ...], Histogram]]) -> Metric:
        """A histogram: for each tuple of label values its counts."""
        made = Metric(self.full_name, self.help, self.kind)
        bucket, total, count = self.series
        bounds = [repr(edge) for edge in self.edges] + ["+Inf"]
        for values_of, held in values:
            labels = dict(zip(self.labels, values_of, strict=True))
            cumulative = held.cumulative()
            for bound, below in zip(bounds, cumulative, strict=True):
                made.add_sample(bucket, labels | {"le": bound}, below)
            made.add_sample(total, labels, held.total)
            made.add_sample(count, labels, cumulative[-1])
        return made
