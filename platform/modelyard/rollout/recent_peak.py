"""The most of what was counted lately. Pure: the time is passed in."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_S: Final = 60.0


class RecentPeak:
    """The largest count of the last WINDOW_S: what runs in one instant may be nothing between two
    bursts, and replicas are there for the bursts."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()  # later and smaller ones only

    def add(self, count: int, now: float) -> None:
        while self._counts and self._counts[-1][1] <= count:
            self._counts.pop()
        self._counts.append((now, count))

    def at(self, now: float) -> int:
        """0 where nothing was counted."""
        while self._counts and now - self._counts[0][0] > WINDOW_S:
            self._counts.popleft()
        return self._counts[0][1] if self._counts else 0
