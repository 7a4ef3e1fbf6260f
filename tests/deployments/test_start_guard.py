"""The thread that keeps a start in the fleet's sight, and ends one that takes too long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from deployments import start_guard
from deployments.reporter import Reporter
from deployments.start_guard import StartGuard
from modelyard.config.model_args import StartBudgets
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport


class Board:
    """`confirmed`: what came by the way that waits for an answer. `deaf`: it has died."""

    def __init__(self) -> None:
        self.posts: list[ReplicaReport] = []
        self.confirmed: list[ReplicaReport] = []
        self.deaf = False
        self.heard = threading.Semaphore(0)

    def post(self, report: ReplicaReport) -> None:
        self.posts.append(report)

    def confirm_blocking(self, report: ReplicaReport, timeout_s: float) -> None:
        assert timeout_s > 0
        self.confirmed.append(report)
        self.heard.release()
        if self.deaf:
            raise ConnectionError("no board")


class Replica:
    app, replica, node, slots = "gen@1", "r-1", "n-1", 4
    draining = False
    place_name, placement_group = "d0", "pg-1"
    gpu_ids: tuple[str, ...] = ("0",)


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def replica() -> Replica:
    return Replica()


@pytest.fixture
def reporter(board: Board, replica: Replica) -> Reporter:
    given: Any = replica
    return Reporter(given, board, lambda: 0)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_guard, "LOOK_EACH_S", 0.001)
    monkeypatch.setattr(start_guard, "POST_PERIOD_S", 0.001)


class Leaving:
    """What a process does at its end, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.gone = threading.Event()

    def kill_engine(self) -> None:
        self.done.append("engine killed")

    def leave(self, within_s: float) -> None:
        self.done.append(within_s)
        if within_s == 0:
            self.gone.set()


@pytest.mark.parametrize("deaf", [False, True])
def test_a_phase_over_its_budget_is_told_then_the_engine_killed_then_the_process_ends(
    reporter: Reporter, board: Board, deaf: bool
) -> None:
    board.deaf = deaf
    reporter.enter(Phase.LOADING)
    leaving = Leaving()
    budgets = StartBudgets(loading_s=1e-6)
    with StartGuard(reporter, budgets, leaving.kill_engine, leaving.leave):
        assert leaving.gone.wait(30)  # and this thread, the loop's, is blocked meanwhile
    bound_s, *rest = leaving.done
    assert bound_s > 0
    assert rest == ["engine killed", 0]
    last = board.confirmed[-1]
    assert (last.phase, last.cause_kind) == (Phase.FAILED, Cause.START_FAILED)
    assert (last.cause or "").startswith("the phase Loading took longer than its budget")


def test_a_start_that_blocks_its_loop_posts_all_the_same(reporter: Reporter, board: Board) -> None:
    """And one post that fails ends nothing."""
    board.deaf = True
    reporter.enter(Phase.LOADING)
    leaving = Leaving()
    with StartGuard(reporter, StartBudgets(), leaving.kill_engine, leaving.leave):
        for _ in range(3):
            assert board.heard.acquire(timeout=30)
    assert {report.phase for report in board.confirmed} == {Phase.LOADING}
    assert leaving.done == []


def test_a_start_that_is_over_is_not_watched(reporter: Reporter) -> None:
    leaving = Leaving()
    with StartGuard(reporter, StartBudgets(), leaving.kill_engine, leaving.leave) as guard:
        pass
    guard._thread.join(30)
    assert not guard._thread.is_alive()
    assert leaving.done == []


def test_a_start_that_serve_stops_drains_and_is_no_crash(
    reporter: Reporter, board: Board, replica: Replica
) -> None:
    reporter.enter(Phase.LOADING)
    replica.draining = True
    leaving = Leaving()
    with StartGuard(reporter, StartBudgets(), leaving.kill_engine, leaving.leave):
        assert board.heard.acquire(timeout=30)
    assert board.posts[-1].phase is Phase.DRAINING
    reporter.enter(Phase.WARMING)
    assert reporter.phase is Phase.DRAINING


def test_the_first_cause_stays(reporter: Reporter, board: Board) -> None:
    reporter.enter(Phase.WARMING)
    reporter.fail("Warming: out of memory", Cause.START_FAILED)
    reporter.fail("another", Cause.STALLED)
    reporter.enter(Phase.READY)
    last = board.posts[-1]
    assert (last.phase, last.cause) == (Phase.FAILED, "Warming: out of memory")
    assert last.cause_kind is Cause.START_FAILED
    assert [phase for phase, _ in last.phases] == [Phase.FETCHING, Phase.WARMING]


@pytest.mark.parametrize(
    "failing",
    [
        lambda reporter: reporter.fail("over budget", Cause.START_FAILED),
        lambda reporter: reporter.tell(Cause.START_FAILED, "over budget"),
    ],
)
def test_a_phase_that_begins_while_a_thread_fails_does_not_undo_it(
    reporter: Reporter,
    board: Board,
    monkeypatch: pytest.MonkeyPatch,
    failing: Callable[[Reporter], None],
) -> None:
    """The thread comes between the loop's look at the phase and what it enters."""
    reporter.enter(Phase.LOADING)
    real, thread = reporter._log.enter, threading.Thread(target=failing, args=(reporter,))

    def enter(phase: Phase) -> None:
        if phase is Phase.WARMING:
            thread.start()
            thread.join(0.2)  # without the lock it has failed by now
        real(phase)

    monkeypatch.setattr(reporter._log, "enter", enter)
    reporter.enter(Phase.WARMING)
    thread.join(30)
    phases = [report.phase for report in board.posts]
    assert phases == [Phase.LOADING, Phase.WARMING, Phase.FAILED]
    assert reporter.report().cause == "over budget"


def test_bytes_are_told_while_fetching_alone(reporter: Reporter, board: Board) -> None:
    reporter.fetched = (1, 2)
    reporter.post()
    assert board.posts[-1].fetched == (1, 2)
    reporter.enter(Phase.VERIFYING)
    assert board.posts[-1].fetched is None


def test_a_replica_lives_as_its_watchdog_says(reporter: Reporter) -> None:
    assert reporter.report().live
    assert reporter.report().stall_after_s is None

    class Vitals:
        live, cause, words, stall_after_s = False, None, None, 12.5

    vitals: Any = Vitals()
    reporter.vitals = vitals
    reporter.enter(Phase.READY)
    assert not reporter.report().live
    assert reporter.report().stall_after_s == 12.5
    assert not reporter.report().ready
