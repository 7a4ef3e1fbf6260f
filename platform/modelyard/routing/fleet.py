"""What an ingress knows of the replicas, from the board's posts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from modelyard.lifecycle.report import Description, Post, ReplicaReport

ALIVE_S: Final = 5.0  # replicas post each second; five missed posts and nobody is there
DEFAULT_LOAD_S: Final = 30.0


class Fleet:
    """Ready replicas and descriptions by version.

    A version is a pool: one app, or several cells named `name@version--b`. Descriptions are never
    forgotten (a version is immutable), so `GET /v1/models` stays whole while a model restarts.
    """

    def __init__(self) -> None:
        self._ready: dict[str, list[ReplicaReport]] = {}
        self._descriptions: dict[str, Description] = {}
        self._load_s: dict[str, float] = {}

    def update(self, posts: Iterable[Post]) -> None:
        """Take one whole reading of the board."""
        ready: dict[str, list[ReplicaReport]] = {}
        for post in posts:
            report = post.report
            version = version_of(report.app)
            if report.description is not None:
                self._descriptions[version] = report.description
            if report.ready and post.age_s < ALIVE_S:
                ready.setdefault(version, []).append(report)
                self._load_s[version] = sum(seconds for _, seconds in report.phases)
        self._ready = ready

    def describe(self, version: str) -> Description | None:
        return self._descriptions.get(version)

    def is_ready(self, version: str) -> bool:
        return version in self._ready

    def load_s(self, version: str) -> float:
        """Seconds from start to ready, as last measured: when to try again a model not loaded."""
        return self._load_s.get(version, DEFAULT_LOAD_S)

    def cells(self, version: str) -> tuple[str, ...]:
        """The apps of a version with a ready replica, in name order."""
        return tuple(sorted({report.app for report in self._ready.get(version, ())}))


def version_of(app: str) -> str:
    """`name@version` of an app, whichever cell it is."""
    return app.partition("--")[0]
