"""The metrics of one process: its registry, and the answer to a scrape."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from modelyard import __version__
from modelyard.contract.errors import Failure, Forbidden, RequestError
from modelyard.telemetry import families
from modelyard.telemetry.exposition import Scrape
from modelyard.tenancy.claim import verify


class ProcessMetrics:
    """One per process, and none shared between two: tests run several ingresses in one process.

    Sources are prometheus_client collectors. They are read from a thread.
    """

    def __init__(self, app: str, replica: str, secret: bytes, *sources: Collector) -> None:
        self._app = app
        self._replica = replica
        self._secret = secret
        self._registry = CollectorRegistry(auto_describe=False)
        for source in (_Build(), *sources):
            self._registry.register(source)

    def add(self, source: Collector) -> None:
        self._registry.register(source)

    async def scrape(self, token: str) -> Scrape | Failure:
        """For a call by handle. Answers a Failure to anything but a signed claim with the role."""
        try:
            if "scrape" not in verify(token, self._secret).roles:
                raise Forbidden("metrics are for keys with the role scrape", reason="role")
        except RequestError as error:
            return error.failure()
        return await self.read()

    async def read(self) -> Scrape:
        """On a thread: writing a thousand samples takes the loop milliseconds."""
        text = await asyncio.to_thread(generate_latest, self._registry)
        return Scrape(text.decode(), self._app, self._replica)


class _Build(Collector):
    def collect(self) -> Iterator[Metric]:
        yield families.BUILD_INFO.metric([((__version__,), 1)])
