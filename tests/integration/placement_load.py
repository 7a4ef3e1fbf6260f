"""How full a fleet is while something else is done to it, sampled from /metrics."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
from prometheus_client.parser import text_string_to_metric_families

from modelyard.config.demo import OPS_KEY

EACH_S = 2.0


class SlotsInUse:
    """replicas: of each model as planned: one that is there twice while it moves counts once, as
    only one of the two gets requests. slots: of each replica."""

    def __init__(self, url: str, replicas: Mapping[str, int], slots: int) -> None:
        self.shares: list[float] = []
        self._replicas, self._slots = replicas, slots
        headers = {"Authorization": f"Bearer {OPS_KEY}"}
        self._client = httpx.Client(base_url=url, headers=headers, timeout=30.0)
        self._stop = threading.Event()

    @contextmanager
    def sampled(self) -> Iterator[None]:
        """While the body runs."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()
            self._client.close()

    def _run(self) -> None:
        while not self._stop.wait(EACH_S):
            try:
                text = self._client.get("/metrics").raise_for_status().text
            except httpx.HTTPError:
                continue  # a busy machine; the caller asks for a number of samples
            self.shares.append(share_of(text, self._replicas, self._slots))


def share_of(text: str, replicas: Mapping[str, int], slots: int) -> float:
    """Requests in flight over slots of ready replicas; those that only wait for one not counted."""
    flying, ready = Counter[str](), Counter[str]()
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            model = sample.labels.get("version", "").partition("@")[0]
            if sample.name == "modelyard_requests_in_flight":
                flying[model] += int(sample.value)
            elif sample.name == "modelyard_replicas_ready":
                ready[model] = max(ready[model], int(sample.value))
    there = {name: slots * min(ready[name], most) for name, most in replicas.items()}
    return sum(min(flying[name], n) for name, n in there.items()) / max(sum(there.values()), 1)
