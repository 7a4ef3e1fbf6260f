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
from typing import Final, Protocol

from cluster.board import Board
from modelyard.control.reading import Decided, Reading
from modelyard.routing.fleet import version_of
from modelyard.scaling.deal import GONE_S, BoardView, CellLoad, Dealer
from modelyard.scaling.queued_plus_ongoing import Decision
from modelyard.scaling.version_signal import BoardSignal

log = logging.getLogger("modelyard.scaling")

PERIOD_S: Final = 0.5
WAIT_S: Final = 1.0


class ReadableBoard(Protocol):
    """The part of the board that is used here."""

    def read_all_blocking(self, timeout_s: float) -> Reading: ...
    def decided(self, decisions: tuple[Decided, ...]) -> None: ...


class Signals:
    """The last reading, the cells that ask, and what was decided. Policies call it from Serve's
    loop, each for its own cell."""

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
        self._dealers: dict[str, Dealer] = {}
        self._decisions: dict[str, tuple[Decision, float]] = {}
        self._thread: threading.Thread | None = None

    def decide(self, cell: CellLoad) -> Decision:
        """A cell's part of what its version needs; the reader's next turn tells the board. Never
        waits."""
        version, now = version_of(cell.app), self._now()
        board = self._view(version, now)
        with self._lock:
            decision = self._dealers.setdefault(version, Dealer()).ask(cell, board, now)
            self._decisions[cell.app] = decision, now
        return decision

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

    def _view(self, version: str, now: float) -> BoardView:
        if self._reading is None:
            return BoardView()
        board, at = self._reading
        signal = board.of_version(version).aged(now - at)
        return BoardView(signal, now - at, board.up_s, board.there)

    def _still_decided(self) -> tuple[Decided, ...]:
        now = self._now()
        with self._lock:
            self._decisions = {
                app: (decision, at)
                for app, (decision, at) in self._decisions.items()
                if now - at <= GONE_S
            }
            self._dealers = {v: one for v, one in self._dealers.items() if one.is_asked(now)}
            return tuple(
                Decided(app, decision.replicas, decision.why, now - at)
                for app, (decision, at) in sorted(self._decisions.items())
            )


_signals: Final = Signals()


def signals() -> Signals:
    """This process's reader, running."""
    _signals.keep_reading()
    return _signals
