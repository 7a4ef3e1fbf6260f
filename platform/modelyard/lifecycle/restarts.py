"""How often replicas of a version left without being asked to by Serve, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport

# Longer than a machine that swaps or compiles may keep a live replica from posting, and than
# Serve's own health check takes to kill one (10 s): what is silent for so long does not come back.
SILENT_S: Final = 20.0


@dataclass(frozen=True, slots=True)
class Restart:
    """So many replicas of a version left for this cause."""

    version: str
    cause: Cause
    count: int


class Restarts:
    """Counts each replica once, at the board. A replica that was Draining when it fell silent was
    stopped by Serve (a scale-down, a redeploy) and does not count, unless an operator drained it.
    """

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, Cause]] = Counter()
        self._counted: set[str] = set()

    def heard(self, report: ReplicaReport) -> None:
        """Take a post as it comes."""
        if report.phase is Phase.FAILED:
            self._count(report, report.cause_kind or Cause.START_FAILED)
        elif report.phase is Phase.DRAINING and report.cause_kind is not None:
            self._count(report, report.cause_kind)

    def look(self, posts: Iterable[Post]) -> None:
        """Given the last post of every replica: who was ready and says nothing any more, without
        having said that it goes, died."""
        for post in posts:
            if post.report.phase is Phase.READY and post.age_s > SILENT_S:
                self._count(post.report, post.report.cause_kind or Cause.CRASHED)

    def forget(self, replicas: Iterable[str]) -> None:
        """Replicas that the board holds no more: nothing of them can be counted twice."""
        self._counted.difference_update(replicas)

    def totals(self) -> tuple[Restart, ...]:
        """Since the board began."""
        return tuple(
            Restart(version, cause, count)
            for (version, cause), count in sorted(self._counts.items())
        )

    def _count(self, report: ReplicaReport, cause: Cause) -> None:
        if report.replica not in self._counted:
            self._counted.add(report.replica)
            self._counts[report.app.partition("--")[0], cause] += 1
