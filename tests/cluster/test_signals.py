"""The controller's one reader of the board, with a board in its hand."""

from __future__ import annotations

import threading

import pytest

from cluster import signals as module
from cluster.signals import Signals
from modelyard.control.ingress_post import IngressPost
from modelyard.control.reading import Decided, IngressEntry, Reading
from modelyard.scaling.deal import COUNTING, GONE_S, STANDS_FOR_ASKS, CellLoad
from modelyard.scaling.queued_plus_ongoing import Decision

GEN = "gen@1.0.0"
POST = IngressPost("i-1", "digest", True, waiting=((GEN, "interactive", 12),))
OLD = "held: board silent for 4 s"
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


def load(app: str = GEN, target: int = 1) -> CellLoad:
    """An idle cell of at most 8 replicas, each good for 2 requests."""
    return CellLoad(app, 0.0, 2.0, target, 0, 8)


def settled(signals: Signals, *cells: CellLoad) -> dict[str, Decision]:
    """What each is told once all have asked often enough."""
    for _ in range(STANDS_FOR_ASKS):
        for cell in cells:
            signals.decide(cell)
    return {cell.app: signals.decide(cell) for cell in cells}


def test_before_the_first_reading_nothing_is_taken_away(signals: Signals) -> None:
    assert settled(signals, load(target=3))[GEN] == Decision(3, "held: no reading of the board yet")


def test_a_reading_ages_until_the_next(signals: Signals, clock: Clock) -> None:
    signals.turn()
    clock.advance(4.0)
    assert settled(signals, load(target=7))[GEN] == Decision(7, OLD)
    signals.turn()
    assert settled(signals, load(target=7))[GEN] == Decision(6, "12 waiting + 0 ongoing / 2")


@pytest.mark.parametrize("failure", [RuntimeError("dead"), TimeoutError(), AttributeError("old")])
def test_a_failing_board_leaves_the_last_reading_to_age(
    signals: Signals, board: BoardInHand, clock: Clock, failure: Exception
) -> None:
    signals.turn()
    board.failure = failure
    clock.advance(4.0)
    signals.turn()
    assert settled(signals, load(target=7))[GEN] == Decision(7, OLD)


def test_after_a_failure_the_boards_successor_is_looked_up(clock: Clock) -> None:
    dead, successor = BoardInHand(), BoardInHand()
    boards = [dead, successor]
    signals = Signals(lambda: boards.pop(0), clock.now)
    signals.turn()
    dead.failure = RuntimeError("killed for good")
    signals.turn()
    signals.turn()
    clock.advance(4.0)
    signals.turn()  # and kept: another look-up would find no third board
    assert settled(signals, load(target=7))[GEN].replicas == 6


def test_the_cells_of_a_version_share_what_waits(signals: Signals, clock: Clock) -> None:
    signals.turn()
    both = settled(signals, load(), load(f"{GEN}--b", target=3))
    why = "of 6 in 2 cells: 12 waiting + 0 ongoing / 2"
    assert both == {GEN: Decision(3, why), f"{GEN}--b": Decision(3, why)}
    clock.advance(GONE_S + 0.1)  # the second cell's app is deleted: its policy asks no more
    signals.turn()
    assert settled(signals, load(target=3))[GEN].replicas == 6


def test_the_board_is_told_what_was_decided_and_how_long_ago(
    signals: Signals, board: BoardInHand, clock: Clock
) -> None:
    signals.decide(load(target=2))
    signals.decide(load("a@1", target=0))
    clock.advance(0.5)
    signals.turn()
    assert board.told == [(Decided("a@1", 0, COUNTING, 0.5), Decided(GEN, 2, COUNTING, 0.5))]


def test_a_deleted_apps_decision_is_forgotten_and_it_begins_anew(
    signals: Signals, board: BoardInHand, clock: Clock
) -> None:
    signals.turn()
    assert settled(signals, load())[GEN].replicas == 6
    clock.advance(GONE_S + 0.1)
    signals.turn()
    assert board.told[-1] == ()
    assert signals.decide(load()) == Decision(1, COUNTING)


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
