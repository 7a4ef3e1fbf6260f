"""What an ingress's quota gate has decided, for all tenants together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.registry import Collector

from modelyard.quota.messages import Tally
from modelyard.telemetry import families

Tallies = Mapping[tuple[str, str], Tally]  # by tenant and model class


class QuotaMetrics(Collector):
    """Without tenants: `modelyard usage` has them, and a label for each has no bound."""

    def __init__(self, tallies: Callable[[], Tallies]) -> None:
        self._tallies = tallies

    def collect(self) -> Iterator[Metric]:
        sums: dict[str, Tally] = {}
        for (_, model_class), tally in list(self._tallies().items()):
            sums[model_class] = sums.get(model_class, Tally()).plus(tally)
        yield families.QUOTA_ADMITTED.metric(((kind,), one.requests) for kind, one in sums.items())
        yield families.QUOTA_REFUSED.metric(((kind,), one.refused) for kind, one in sums.items())
        yield families.QUOTA_WOULD_REFUSE.metric(
            ((kind,), one.would_refuse) for kind, one in sums.items()
        )
        yield families.QUOTA_SETTLED.metric(
            ((kind, direction), tokens)
            for kind, one in sums.items()
            for direction, tokens in (("input", one.input_tokens), ("output", one.output_tokens))
        )
