"""How often replicas of a version left without being asked to by Serve, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import START, Phase
from modelyard.lifecycle.report import Post, ReplicaReport
from modelyard.lifecycle.silence import SILENT_S


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
        """Given the last post of every replica: who says nothing any more, without having said
        that it goes, died. Killed for want of memory, most often, when it was not ready yet."""
        for post in posts:
            phase, cause = post.report.phase, post.report.cause_kind
            if post.age_s < SILENT_S:
                continue
            if phase is Phase.READY:
                self._count(post.report, cause or Cause.CRASHED)
            elif phase in START:
                self._count(post.report, Cause.START_FAILED)

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
