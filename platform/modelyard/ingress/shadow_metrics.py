"""What an ingress counts of shadow copies and of judged answers."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from modelyard.ingress.judge import Judge
from modelyard.ingress.shadow import Shadow
from modelyard.telemetry import families


class ShadowMetrics(Collector):
    """Read from a thread: `list(d.items())` is one step for the interpreter."""

    def __init__(self, shadow: Shadow, judge: Judge) -> None:
        self._shadow = shadow
        self._judge = judge

    def collect(self) -> Iterator[Metric]:
        yield families.SHADOW_COPIES.metric(list(self._shadow.counts.items()))
        yield families.JUDGED_ANSWERS.metric(list(self._judge.counts.items()))
