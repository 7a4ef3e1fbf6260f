"""A clock that stands still while its process does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Asked each second, so an answer that comes later says that this process was stopped, or its
# machine: what fell silent meanwhile may well have spoken.
TICK_S: Final = 1.0
LATE_S: Final = 3.0


class AwakeClock:
    """Seconds in which this process ran. Somebody must ask at least each TICK_S."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._asked_at = now()
        self._awake_s = 0.0

    def now(self) -> float:
        """A pause counts as one tick, however long it was."""
        asked_at, self._asked_at = self._asked_at, self._now()
        passed_s = self._asked_at - asked_at
        self._awake_s += passed_s if passed_s < LATE_S else TICK_S
        return self._awake_s
