"""The clock of a simulation, and what happens when."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count


class Event:
    """Something that will happen, and can be called off."""

    __slots__ = ("action", "when")

    def __init__(self, when: float, action: Callable[[], None]) -> None:
        self.when = when
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Agenda:
    """Discrete events: the clock jumps from one to the next. Those of one moment keep their order.

    Times are seconds from the start.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Event]] = []
        self._number = count()

    def at(self, when: float, action: Callable[[], None]) -> Event:
        """Have `action` called at `when`, or now where that has passed."""
        event = Event(max(when, self.now), action)
        heappush(self._events, (event.when, next(self._number), event))
        return event

    def after(self, delay_s: float, action: Callable[[], None]) -> Event:
        return self.at(self.now + delay_s, action)

    def run(self, until: float) -> None:
        """Let everything happen that is due up to and including `until`."""
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heappop(self._events)
            if event.action is not None:
                event.action()
        self.now = until
