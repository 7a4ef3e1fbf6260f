"""What rollouts ask of their versions' replicas, out of the board's readings."""

from __future__ import annotations

from collections.abc import Iterable

from modelyard.control.reading import Reading
from modelyard.control.rollout_states import Planned
from modelyard.lifecycle.silence import ALIVE_S
from modelyard.rollout.capacity import Demand
from modelyard.rollout.recent_peak import RecentPeak
from modelyard.routing.fleet import version_of


class Demands:
    """One per control: the last reading, and the most that each rollout had at once lately."""

    def __init__(self) -> None:
        self.reading: Reading | None = None
        self._requests: dict[str, RecentPeak] = {}
        self._now = 0.0

    def take(self, reading: Reading | None, plans: Iterable[Planned], now: float) -> None:
        """Once a second. reading: None while the board is silent. now: monotonic seconds."""
        self.reading, self._now = reading, now
        known = {planned.plan.id: planned for planned in plans}
        self._requests = {rollout: self._requests.get(rollout) or RecentPeak() for rollout in known}
        if reading is None:
            return
        for rollout, planned in known.items():
            self._requests[rollout].add(_requests(planned, reading), now)

    def of_canary(self, planned: Planned) -> Demand | None:
        """None where nobody knows."""
        return self._of(planned, planned.canary)

    def of_stable(self, planned: Planned) -> Demand | None:
        """As `of_canary`: what the stable version needs to take everything back."""
        return self._of(planned, planned.stable)

    def _of(self, planned: Planned, version: str) -> Demand | None:
        if self.reading is None:
            return None
        ready = [
            post.report
            for post in self.reading.posts
            if version_of(post.report.app) == version and post.report.ready and post.age_s < ALIVE_S
        ]
        lately = self._requests.get(planned.plan.id)
        requests = _requests(planned, self.reading)
        if lately is not None:
            requests = max(requests, lately.at(self._now))
        return Demand(len(ready), sum(report.slots for report in ready), requests)


def _requests(planned: Planned, reading: Reading) -> int:
    """Of both arms. An ingress counts what waits among what it holds."""
    both = (planned.stable, planned.canary)
    return sum(
        count
        for entry in reading.ingresses
        if entry.age_s < ALIVE_S
        for version, count in entry.post.in_flight
        if version in both
    )
