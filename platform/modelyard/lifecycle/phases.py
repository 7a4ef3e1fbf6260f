"""The phases of a replica's life, and how long each took."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final


class Phase(StrEnum):
    """Scheduled: Serve has the replica, but no process of it has spoken yet. Draining: Serve
    stops it, and it finishes what it holds. Failed: it goes, its report says why."""

    SCHEDULED = "Scheduled"
    FETCHING = "Fetching"
    VERIFYING = "Verifying"
    LOADING = "Loading"
    WARMING = "Warming"
    SELF_TEST = "SelfTest"
    READY = "Ready"
    DRAINING = "Draining"
    FAILED = "Failed"


# Before a replica was ever ready, in order.
START: Final = (
    Phase.SCHEDULED,
    Phase.FETCHING,
    Phase.VERIFYING,
    Phase.LOADING,
    Phase.WARMING,
    Phase.SELF_TEST,
)


class PhaseLog:
    """Which phase a replica is in, and the seconds spent in those before it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._done: list[tuple[Phase, float]] = []
        self._phase = Phase.FETCHING
        self._since = now()

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def phase_s(self) -> float:
        """Seconds in the present phase."""
        return self._now() - self._since

    @property
    def done(self) -> tuple[tuple[Phase, float], ...]:
        """The phases left behind, in order, each with its seconds."""
        return tuple(self._done)

    def enter(self, phase: Phase) -> None:
        if phase is self._phase:
            return
        self._done.append((self._phase, self.phase_s))
        self._phase, self._since = phase, self._now()
