"""The families of the placement: how far what runs is from what was planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

from modelyard.telemetry import families
from modelyard.telemetry.exposition import Scrape


@dataclass(frozen=True, slots=True)
class PlacementFigures:
    """mismatches: how many of each kind, those with none too. pending_s: of (app, reason), the
    longest that a replica has waited for a place. planned, used: places."""

    mismatches: Mapping[str, int]
    pending_s: Mapping[tuple[str, str], float]
    planned: int
    used: int


class PlacementMetrics(Collector):
    """Exported by the ingress that is scraped, once for all."""

    def __init__(self, figures: PlacementFigures) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures
        yield families.PLACEMENT_MISMATCHES.metric(
            ((kind,), count) for kind, count in sorted(figures.mismatches.items())
        )
        yield families.PLACEMENT_PENDING.metric(sorted(figures.pending_s.items()))
        yield families.PLACEMENT_PLACES.metric(
            [(("planned",), figures.planned), (("used",), figures.used)]
        )

    def scrape(self) -> Scrape:
        return Scrape(generate_latest(self).decode())
