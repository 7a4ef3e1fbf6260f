"""What a model replica exports of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client import REGISTRY, Metric
from prometheus_client.registry import Collector

from modelyard.telemetry import families

_VLLM: Final = "vllm:"
_RUNNING: Final = "vllm:num_requests_running"
_WAITING: Final = "vllm:num_requests_waiting"
_KV: Final = "vllm:kv_cache_usage_perc"  # a ratio, for all its name


class QueueMetrics(Collector):
    """Of a small model: the batcher's inputs. counts: (computed now, waiting)."""

    def __init__(self, counts: Callable[[], tuple[int, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        active, waiting = self._counts()
        yield families.SEQUENCES_ACTIVE.metric([((), active)])
        yield families.SEQUENCES_WAITING.metric([((), waiting)])


class EngineMetrics(Collector):
    """Of a generator: vLLM's own families, and three of them under our names.

    vLLM keeps them in prometheus_client's global registry, one engine to a process.
    """

    def __init__(self, source: Collector = REGISTRY) -> None:
        self._source = source

    def collect(self) -> Iterator[Metric]:
        theirs = [one for one in self._source.collect() if one.name.startswith(_VLLM)]
        for family, name in (
            (families.SEQUENCES_ACTIVE, _RUNNING),
            (families.SEQUENCES_WAITING, _WAITING),
            (families.KV_CACHE, _KV),
        ):
            value = _value(theirs, name)
            yield family.metric([] if value is None else [((), value)])
        yield from theirs


def _value(metrics: Iterable[Metric], name: str) -> float | None:
    for metric in metrics:
        if metric.name == name and metric.samples:
            return sum(sample.value for sample in metric.samples)
    return None
