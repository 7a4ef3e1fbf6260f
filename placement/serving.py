"""What a running platform serves, as far as it can be known: what may be dropped of it or not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from modelyard.config.table import Table
from modelyard.control.published import Override, Published
from modelyard.control.reading import Reading
from modelyard.lifecycle.report import ReplicaReport
from modelyard.lifecycle.silence import ALIVE_S
from modelyard.routing.fleet import version_of
from modelyard.scaling.version_signal import INGRESS_SILENT_S


@dataclass(frozen=True, slots=True)
class Platform:
    """What runs. table: the deployed one; None where it cannot be read. reading: the board's; None
    where it does not answer."""

    table: Table | None
    reading: Reading | None

    @property
    def unknown(self) -> str:
        """Why it is not known who answers whom; empty where it is."""
        if self.reading is None:
            return "the board cannot be read"
        if self.reading.up_s < ALIVE_S:
            return "the board has just started"
        return ""

    @property
    def published(self) -> Published | None:
        return self.reading.published if self.reading else None

    @property
    def overrides(self) -> Sequence[Override]:
        return self.published.overrides if self.published is not None else ()

    def weight(self, rollout: str) -> float:
        return (self.published.weight(rollout) if self.published is not None else None) or 0.0

    def in_flight(self, version: str) -> int:
        entries = self.reading.ingresses if self.reading else ()
        return sum(
            count
            for entry in entries
            if entry.age_s < INGRESS_SILENT_S
            for name, count in entry.post.in_flight
            if name == version
        )

    def ready(self, app: str) -> int:
        return sum(report.ready and report.app == app for report in self._alive())

    def serves(self, version: str) -> bool:
        """Whether a replica of it is ready: one that never came up, or sleeps at zero, answers
        nobody."""
        return any(one.ready and version_of(one.app) == version for one in self._alive())

    def ongoing(self, app: str) -> int:
        return sum(report.ongoing for report in self._alive() if report.app == app)

    def drained(self, app: str) -> bool:
        return any(one.kind == "drain" and one.target == app for one in self.overrides)

    def _alive(self) -> Iterator[ReplicaReport]:
        """The board keeps a dead one's last post for minutes, with the requests that died too."""
        posts = self.reading.posts if self.reading else ()
        return (post.report for post in posts if post.age_s < ALIVE_S)
