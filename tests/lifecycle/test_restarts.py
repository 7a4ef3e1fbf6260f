"""What counts as a restart, and that it counts once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import START, Phase
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.restarts import Restart, Restarts
from modelyard.lifecycle.silence import SILENT_S
from modelyard.testing.in_memory import post

VERSION = "gen@1.0.0"


def replica(phase: Phase, age_s: float = 0.1, app: str = VERSION, **changes: Any) -> Post:
    made = post(app, phase=phase, age_s=age_s)
    return Post(replace(made.report, **changes), age_s)


def counted(*posts: Post) -> dict[Cause, int]:
    restarts = Restarts()
    for one in posts:
        restarts.heard(one.report)
        restarts.look([one])
        restarts.look([one])
    return {one.cause: one.count for one in restarts.totals()}


def test_a_ready_replica_that_falls_silent_has_crashed() -> None:
    assert counted(replica(Phase.READY), replica(Phase.READY, SILENT_S + 1)) == {Cause.CRASHED: 1}


def test_one_that_serve_stopped_does_not_count() -> None:
    assert counted(replica(Phase.READY), replica(Phase.DRAINING, SILENT_S + 1)) == {}


def test_one_that_an_operator_drained_counts_as_drained_once() -> None:
    drained = replica(Phase.DRAINING, cause_kind=Cause.DRAINED)
    assert counted(drained, drained, replace(drained, age_s=300.0)) == {Cause.DRAINED: 1}


@pytest.mark.parametrize("cause", list(Cause))
def test_one_that_says_why_it_fails_counts_under_that(cause: Cause) -> None:
    assert counted(replica(Phase.FAILED, cause_kind=cause)) == {cause: 1}


def test_one_that_fails_without_a_word_did_not_start() -> None:
    assert counted(replica(Phase.FAILED)) == {Cause.START_FAILED: 1}


@pytest.mark.parametrize("phase", START)
def test_a_start_that_falls_silent_has_failed(phase: Phase) -> None:
    """As one that was killed for want of memory."""
    silent = replica(phase, SILENT_S + 1)
    assert counted(replica(phase), silent, silent) == {Cause.START_FAILED: 1}


def test_one_that_loads_for_long_and_says_so_is_well() -> None:
    assert counted(replica(Phase.LOADING, SILENT_S - 1, phase_s=3600.0)) == {}


def test_cells_of_a_version_are_counted_together() -> None:
    restarts = Restarts()
    for name, app in (("r1", VERSION), ("r2", f"{VERSION}--b")):
        restarts.heard(replica(Phase.FAILED, app=app, replica=name).report)
    assert restarts.totals() == (Restart(VERSION, Cause.START_FAILED, 2),)


def test_what_was_counted_stays_when_the_replica_is_forgotten() -> None:
    restarts = Restarts()
    restarts.heard(replica(Phase.FAILED).report)
    restarts.forget(["r1"])
    assert restarts.totals() == (Restart(VERSION, Cause.START_FAILED, 1),)
