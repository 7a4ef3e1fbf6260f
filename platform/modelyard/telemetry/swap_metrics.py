"""The families of swap areas, out of what control last decided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import Metric
from prometheus_client.registry import Collector

from modelyard.telemetry import families


class SwapMetrics(Collector):
    """Exported by control itself: it alone loads models of an area."""

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        """read: is called on a scrape's thread; what it answers never changes (SwapDesk.shown)."""
        self._read = read

    def collect(self) -> Iterator[Metric]:
        shown = self._read()
        yield families.SWAP_LOADS.metric(((area,), one["loads"]) for area, one in shown.items())
        yield families.SWAP_EVICTIONS.metric(
            ((area,), one["evictions"]) for area, one in shown.items()
        )
        yield families.SWAP_WAITING.metric(
            ((area,), len(one["waiting"])) for area, one in shown.items()
        )
