"""What control knows of one holder's part of one bucket: never less than the holder may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.quota.bucket import microseconds
from modelyard.quota.figures import Figures, Key
from modelyard.quota.holder import WANT_S
from modelyard.quota.messages import Grant, Holding
from modelyard.quota.split import Share

STEADY: Final = 20  # a change of less than a twentieth is none
NONE: Final = Grant(0, 0)


@dataclass(slots=True)
class Account:
    """rate, burst: the most that the holder can have under any reply it may still take.

    granted: the part of the last reply. credit: units of level ever sent. extra: level sent beyond
    what `burst` grew by: until the last reply is acknowledged, a full holder may come to have that
    much above its burst.
    """

    rate: int = 0
    burst: int = 0
    extra: int = 0
    granted: Grant = NONE
    credited: int = 0
    returned: int = 0
    level: int = 0
    busy: int = 0
    demand: int = 0
    want: int = 0
    read_at: float = 0.0

    def adopt(self, holding: Holding) -> None:
        """Learn what a holder has from an earlier control."""
        self.rate, self.burst = max(self.rate, holding.rate), max(self.burst, holding.burst)
        self.granted = Grant(holding.rate, holding.burst, holding.credited)
        self.returned = holding.returned

    def read(self, holding: Holding, is_last: bool, now: float) -> int:
        """Take in a report; the units of level that came back with it.

        is_last: the holder has taken our last reply, so no earlier and larger one can come.
        """
        came_back = holding.returned - self.returned
        self.returned, self.credited = holding.returned, holding.credited
        self.level, self.demand, self.want = holding.level, holding.demand, holding.want
        self.busy = max(0, holding.burst - holding.level)  # of permits: those in use
        self.read_at = now
        if is_last:
            self.rate, self.burst, self.extra = holding.rate, holding.burst, 0
        return came_back

    def steadied(self, part: Figures) -> Figures:
        """What was granted, where the part has changed by a few percent only: every change takes
        some level out of use until it is acknowledged."""
        old = self.granted
        if abs(part.burst - old.burst) * STEADY > old.burst:
            return part
        if abs(part.rate - old.rate) * STEADY > old.rate:
            return part
        return Figures(old.rate, old.burst)

    def grant(self, part: Figures, credit: int) -> Grant:
        """Send a part: a larger one counts at once, a smaller one when it is acknowledged."""
        self.extra += max(0, credit - max(0, part.burst - self.burst))
        self.rate, self.burst = max(self.rate, part.rate), max(self.burst, part.burst)
        self.granted = Grant(part.rate, part.burst, self.granted.credit + credit)
        return self.granted

    def share(self, key: Key, now: float) -> Share:
        """As the division sees it: refilled since the report, and with what is under way."""
        fresh = now - self.read_at < WANT_S  # of a silent holder nothing can be gathered
        want = self.want if fresh else 0
        if key.is_permits:
            free = max(0, self.level, self.granted.burst - self.busy)
            return Share(self.demand, free if fresh else 0, want, self.busy)
        passed_us = max(0, microseconds(now) - microseconds(self.read_at))
        under_way = self.granted.credit - self.credited
        filled = self.level + under_way + passed_us * self.granted.rate
        level = max(self.level, min(self.granted.burst, filled))
        return Share(self.demand, level if fresh else min(0, level), want)
