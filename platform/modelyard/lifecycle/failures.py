"""The last failure of each app: for whoever looks long after the replica that failed has gone."""

from __future__ import annotations

from typing import Final

from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport

KEPT_S: Final = 3600.0


class Failures:
    """At the board. Serve gives an app up after a few failures and forgets why; nothing else keeps
    the cause. Kept apart from the posts, so that no probe and no metric counts it.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[ReplicaReport, float]] = {}

    def heard(self, report: ReplicaReport, now: float) -> None:
        """Take a post as it comes. A replica that became ready after the failure ends it; those of
        before a failed update, which serve on, say nothing about it."""
        if report.phase is Phase.FAILED:
            self._last[report.app] = (report, now)
        elif report.phase is Phase.READY and report.app in self._last:
            _, failed_at = self._last[report.app]
            if report.phase_s < now - failed_at:
                del self._last[report.app]

    def last(self, now: float) -> tuple[Post, ...]:
        """Each app's last Failed report of the past hour, with its age."""
        self._last = {app: one for app, one in self._last.items() if now - one[1] < KEPT_S}
        return tuple(Post(report, now - at) for report, at in self._last.values())
