"""The families of rollouts, out of what control last saw of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import Metric
from prometheus_client.registry import Collector

from modelyard.control.rollout_shown import RolloutsShown
from modelyard.rollout.verdict import GateState
from modelyard.telemetry import families


class RolloutMetrics(Collector):
    """Exported by control itself: ingresses have no part in it."""

    def __init__(self, read: Callable[[], RolloutsShown]) -> None:
        """read: is called on a scrape's thread; what it answers never changes."""
        self._read = read

    def collect(self) -> Iterator[Metric]:
        shown = self._read()
        yield families.ROLLOUT_PHASE.metric(
            ((record.alias, record.id, record.phase.value), 1) for record, _ in shown.rollouts
        )
        verdicts = [
            ((record.alias, record.id, verdict.gate), verdict)
            for record, found in shown.rollouts
            for verdict in found
        ]
        yield families.ROLLOUT_EVALUE.metric(
            (labels, verdict.evidence)
            for labels, verdict in verdicts
            if verdict.evidence is not None
        )
        yield families.ROLLOUT_FAILING.metric(
            (labels, float(verdict.state is GateState.FAILING)) for labels, verdict in verdicts
        )
        yield families.ROLLOUT_OUTCOMES.metric(shown.outcomes)
