"""What the scaling policies of a controller know of the board: one reader for all of them.

Serve's controller calls a policy ten times a second and must never wait in one, so a thread reads
and the policies look at its last reading. Serve pickles a policy's module by value: a reader there
would be one thread for each app, and one more for each redeploy. This module is imported, so the
process has one. (A metric of the ingresses would come every second through Serve's own averages,
without wishes, floors or a freeze.)
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from cluster.board import Board
from modelyard.control.reading import Decided, Reading
from modelyard.routing.fleet import version_of
from modelyard.scaling.queued_plus_ongoing import Decision
from modelyard.scaling.version_signal import BoardSignal, VersionSignal

log = logging.getLogger("modelyard.scaling")

PERIOD_S: Final = 0.5
WAIT_S: Final = 1.0
APP_GONE_S: Final = 5.0  # a deleted app's policy asks no more, and then its cell counts no more


class ReadableBoard(Protocol):
    """The part of the board that is used here."""

    def read_all_blocking(self, timeout_s: float) -> Reading: ...
    def decided(self, decisions: tuple[Decided, ...]) -> None: ...


@dataclass(frozen=True, slots=True)
class AppSignal:
    """A cell's part of its version's signal; the reading's age, None before the first."""

    version: VersionSignal
    board_age_s: float | None
    board_up_s: float


class Signals:
    """The last reading, and what was decided from it. Policies call it from Serve's loop."""

    def __init__(
        self,
        connect: Callable[[], ReadableBoard] = Board,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._now = now
        self._board: ReadableBoard | None = None
        self._failing = False
        self._reading: tuple[BoardSignal, float] | None = None
        self._lock = threading.Lock()  # held for microseconds: two dicts that two threads share
        self._asked: dict[str, dict[str, float]] = {}
        self._decisions: dict[str, tuple[Decision, float]] = {}
        self._thread: threading.Thread | None = None

    def signal_for(self, app: str) -> AppSignal:
        """Never waits and never raises."""
        version, now = version_of(app), self._now()
        cells = self._cells(version, app, now)
        if self._reading is None:
            return AppSignal(VersionSignal(), None, 0.0)
        board, at = self._reading
        age_s = now - at
        known = board.of_version(version)
        return AppSignal(known.in_cell(cells, age_s), age_s, board.up_s)

    def decided(self, app: str, decision: Decision) -> None:
        """Remember it; the reader's next turn tells the board."""
        with self._lock:
            self._decisions[app] = (decision, self._now())

    def keep_reading(self) -> None:
        """Start the thread unless it lives. It has died in a forked process."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="modelyard-signals", daemon=True)
            self._thread.start()

    def turn(self) -> None:
        """Tell the board what was decided, and read it. Never raises."""
        try:
            # A new door after a failure: a board that was killed for good has a successor.
            board = self._board or self._connect()
            self._board = None
            board.decided(self._still_decided())
            at = self._now()  # before the wait, so that a reading never looks younger than it is
            reading = board.read_all_blocking(WAIT_S)
            self._reading = (BoardSignal.of(reading), at)
            self._board = board
        except Exception as error:  # noqa: BLE001  the edge of a background thread
            if not self._failing:
                log.warning("the board cannot be read, no replica is taken away: %r", error)
            self._failing = True
        else:
            if self._failing:
                log.warning("the board can be read again")
            self._failing = False

    def _run(self) -> None:
        while True:
            self.turn()
            time.sleep(PERIOD_S)

    def _cells(self, version: str, app: str, now: float) -> int:
        """The apps of a version whose policies ask."""
        with self._lock:
            asked = self._asked.setdefault(version, {})
            asked[app] = now
            gone = [other for other, at in asked.items() if now - at > APP_GONE_S]
            for other in gone:
                del asked[other]
            return len(asked)

    def _still_decided(self) -> tuple[Decided, ...]:
        now = self._now()
        with self._lock:
            self._decisions = {
                app: (decision, at)
                for app, (decision, at) in self._decisions.items()
                if now - at <= APP_GONE_S
            }
            return tuple(
                Decided(app, decision.replicas, decision.why, now - at)
                for app, (decision, at) in sorted(self._decisions.items())
            )


_signals: Final = Signals()


def signals() -> Signals:
    """This process's reader, running."""
    _signals.keep_reading()
    return _signals
