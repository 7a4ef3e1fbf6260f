"""The families of the whole fleet, out of one reading of the board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import Metric, generate_latest
from prometheus_client.registry import Collector

from modelyard.config.table import Table
from modelyard.control.reading import Reading
from modelyard.lifecycle.phases import START
from modelyard.lifecycle.silence import ALIVE_S, is_there
from modelyard.routing.fleet import version_of
from modelyard.telemetry import families
from modelyard.telemetry.exposition import Scrape

CONTROL_HEARD_WITHIN_S: Final = 5.0


class FleetMetrics(Collector):
    """Exported by the ingress that is scraped, once for all: its labels name the replicas."""

    def __init__(
        self,
        reading: Reading | None,
        table: Table | None,
        missing: Mapping[tuple[str, str], bool],
    ) -> None:
        """reading: None when the board did not answer. missing: for each (app, replica) that a
        scrape expected, whether it did not answer."""
        self._reading = reading
        self._table = table
        self._missing = missing

    def collect(self) -> Iterator[Metric]:
        if self._reading is not None:
            yield from _replicas(self._reading)
            yield from _ingresses(self._reading)
            yield from _control(self._reading, self._table)
            yield families.BOARD_UP.metric([((), self._reading.up_s)])
        yield families.SCRAPE_MISSING.metric(
            (key, float(gone)) for key, gone in sorted(self._missing.items())
        )

    def scrape(self) -> Scrape:
        """Blocks for as long as writing the text takes."""
        return Scrape(generate_latest(self).decode())


def _replicas(reading: Reading) -> Iterator[Metric]:
    reports = [post.report for post in reading.posts if is_there(post.report.phase, post.age_s)]
    ready = Counter({version_of(report.app): 0 for report in reports})
    ready.update(version_of(report.app) for report in reports if report.ready)
    keys = {report: (version_of(report.app), report.app, report.replica) for report in reports}
    yield families.REPLICA_PHASE.metric(((*keys[report], report.phase), 1) for report in reports)
    yield families.STARTUP_PHASE.metric(
        ((*keys[report], phase), seconds)
        for report in reports
        for phase, seconds in report.phases
        if phase in START
    )
    yield families.REPLICAS_READY.metric(((version,), n) for version, n in ready.items())
    slots: Counter[str] = Counter()
    for report in reports:
        slots[version_of(report.app)] += report.slots if report.ready else 0
    yield families.SLOTS.metric(((version,), n) for version, n in slots.items())
    desired: Counter[str] = Counter()
    for decided in reading.decisions:
        desired[version_of(decided.app)] += decided.replicas
    yield families.REPLICAS_DESIRED.metric(((version,), n) for version, n in desired.items())
    yield families.REPLICA_RESTARTS.metric(
        ((one.version, one.cause), one.count) for one in reading.restarts
    )


def _ingresses(reading: Reading) -> Iterator[Metric]:
    posts = [entry.post for entry in reading.ingresses if entry.age_s < ALIVE_S]
    yield families.CONFIG_VALID.metric(((post.ingress,), float(post.table_valid)) for post in posts)
    yield families.CONFIG_INFO.metric(((post.ingress, post.table_digest), 1) for post in posts)
    yield families.IN_FLIGHT.metric(
        ((post.ingress, version), n) for post in posts for version, n in post.in_flight
    )
    yield families.WAITING.metric(
        ((post.ingress, lane, band), n) for post in posts for lane, band, n in post.waiting
    )


def _control(reading: Reading, table: Table | None) -> Iterator[Metric]:
    age_s, published = reading.published_age_s, reading.published
    heard = age_s is not None and age_s < CONTROL_HEARD_WITHIN_S
    yield families.CONTROL_UP.metric([((), float(heard))])
    routes = table.routes if table is not None else {}
    yield families.ROLLOUT_WEIGHT.metric(
        ((alias, route.canary), (published.weight(route.rollout.id) or 0.0) / 100)
        for alias, route in routes.items()
        if published is not None and route.rollout is not None and route.canary is not None
    )
