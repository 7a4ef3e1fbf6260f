"""The controller's one reader of the board, with a board in its hand."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from cluster import signals as module
from cluster.signals import APP_GONE_S, Signals
from modelyard.control.ingress_post import IngressPost
from modelyard.control.reading import Decided, IngressEntry, Reading
from modelyard.scaling.queued_plus_ongoing import Decision

GEN = "gen@1.0.0"
POST = IngressPost("i-1", "digest", True, waiting=((GEN, "interactive", 12),))
READING = Reading((), (IngressEntry(POST, 0.1),), (), None, None, up_s=60.0)


class Clock:
    """Seconds that only a test lets pass."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> float:
        return self.at

    def advance(self, seconds: float) -> None:
        self.at += seconds


class BoardInHand:
    """A board that answers what it is told to, or fails."""

    def __init__(self) -> None:
        self.reading = READING
        self.failure: Exception | None = None
        self.told: list[tuple[Decided, ...]] = []

    def read_all_blocking(self, timeout_s: float) -> Reading:
        if self.failure is not None:
            raise self.failure
        return self.reading

    def decided(self, decisions: tuple[Decided, ...]) -> None:
        self.told.append(decisions)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def board() -> BoardInHand:
    return BoardInHand()


@pytest.fixture
def signals(board: BoardInHand, clock: Clock) -> Signals:
    return Signals(lambda: board, clock.now)


def test_before_the_first_reading_its_age_is_none(signals: Signals) -> None:
    signal = signals.signal_for(GEN)
    assert (signal.version.waiting, signal.board_age_s) == (0, None)


def test_a_reading_ages_until_the_next(signals: Signals, clock: Clock) -> None:
    signals.turn()
    clock.advance(2.5)
    signal = signals.signal_for(GEN)
    assert (signal.version.waiting, signal.board_age_s, signal.board_up_s) == (12, 2.5, 60.0)
    signals.turn()
    assert signals.signal_for(GEN).board_age_s == 0


@pytest.mark.parametrize("failure", [RuntimeError("dead"), TimeoutError(), AttributeError("old")])
def test_a_failing_board_leaves_the_last_reading_to_age(
    signals: Signals, board: BoardInHand, clock: Clock, failure: Exception
) -> None:
    signals.turn()
    board.failure = failure
    clock.advance(4.0)
    signals.turn()
    assert signals.signal_for(GEN).board_age_s == 4.0


def test_after_a_failure_the_boards_successor_is_looked_up(clock: Clock) -> None:
    dead, successor = BoardInHand(), BoardInHand()
    boards = [dead, successor]
    signals = Signals(lambda: boards.pop(0), clock.now)
    signals.turn()
    dead.failure = RuntimeError("killed for good")
    signals.turn()
    successor.reading = replace(READING, up_s=1.0)
    signals.turn()
    assert signals.signal_for(GEN).board_up_s == 1.0
    signals.turn()  # and kept: another look-up would find no third board
    assert signals.signal_for(GEN).board_age_s == 0


def test_the_cells_of_a_version_share_what_waits(signals: Signals, clock: Clock) -> None:
    signals.turn()
    signals.signal_for(GEN)
    assert signals.signal_for(f"{GEN}--b").version.waiting == 6
    assert signals.signal_for(GEN).version.waiting == 6
    clock.advance(APP_GONE_S + 0.1)  # the second cell's app is deleted: its policy asks no more
    assert signals.signal_for(GEN).version.waiting == 12


def test_the_board_is_told_what_was_decided_and_how_long_ago(
    signals: Signals, board: BoardInHand, clock: Clock
) -> None:
    signals.decided(GEN, Decision(1, "idle"))
    signals.decided(GEN, Decision(3, "load"))
    signals.decided("a@1", Decision(0, "idle"))
    clock.advance(0.5)
    signals.turn()
    assert board.told == [(Decided("a@1", 0, "idle", 0.5), Decided(GEN, 3, "load", 0.5))]


def test_a_deleted_apps_decision_is_forgotten(
    signals: Signals, board: BoardInHand, clock: Clock
) -> None:
    signals.decided(GEN, Decision(1, "idle"))
    clock.advance(APP_GONE_S + 0.1)
    signals.turn()
    assert board.told == [()]


def test_a_process_has_one_reader_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(Signals, "_run", lambda self: release.wait())
    mine = Signals(BoardInHand)
    monkeypatch.setattr(module, "_signals", mine)
    before = set(threading.enumerate())
    try:
        assert {module.signals() for _ in range(5)} == {mine}
        (thread,) = set(threading.enumerate()) - before
        assert thread.daemon
    finally:
        release.set()
    thread.join()
    release.clear()
    try:
        module.signals()  # it has died, as in a forked process
        (again,) = set(threading.enumerate()) - before
    finally:
        release.set()
    again.join()
