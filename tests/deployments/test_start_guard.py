"""The thread that ends a start which takes too long, though the loop is blocked."""

from __future__ import annotations

import threading
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
    def __init__(self) -> None:
        self.posts: list[ReplicaReport] = []

    def post(self, report: ReplicaReport) -> None:
        self.posts.append(report)


class Replica:
    app, replica, node, slots = "gen@1", "r-1", "n-1", 4
    draining = False


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def reporter(board: Board) -> Reporter:
    replica: Any = Replica()
    return Reporter(replica, board, lambda: 0)  # type: ignore[arg-type]


def test_a_phase_over_its_budget_ends_the_process(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_guard, "LOOK_EACH_S", 0.001)
    reporter.enter(Phase.LOADING)
    left, why = threading.Event(), []

    def leave(cause: str) -> None:
        why.append(cause)
        left.set()

    with StartGuard(reporter, StartBudgets(loading_s=1e-6), leave):
        assert left.wait(30)  # and this thread, the loop's, is blocked meanwhile
    assert len(why) == 1
    assert why[0].startswith("the phase Loading took longer than its budget")


def test_a_start_that_is_over_is_not_watched(
    reporter: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start_guard, "LOOK_EACH_S", 0.001)
    why: list[str] = []
    with StartGuard(reporter, StartBudgets(), why.append) as guard:
        pass
    guard._thread.join(30)
    assert not guard._thread.is_alive()
    assert why == []


def test_the_first_cause_stays(reporter: Reporter, board: Board) -> None:
    reporter.enter(Phase.WARMING)
    reporter.fail("Warming: out of memory", Cause.START_FAILED)
    reporter.fail("another", Cause.STALLED)
    reporter.enter(Phase.READY)
    last = board.posts[-1]
    assert (last.phase, last.cause) == (Phase.FAILED, "Warming: out of memory")
    assert last.cause_kind is Cause.START_FAILED
    assert [phase for phase, _ in last.phases] == [Phase.FETCHING, Phase.WARMING]


def test_bytes_are_told_while_fetching_alone(reporter: Reporter, board: Board) -> None:
    reporter.fetched = (1, 2)
    reporter.post()
    assert board.posts[-1].fetched == (1, 2)
    reporter.enter(Phase.VERIFYING)
    assert board.posts[-1].fetched is None
