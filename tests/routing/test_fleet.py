from dataclasses import replace

import pytest

from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.probes import ProbeCounts
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.silence import ALIVE_S, SILENT_S
from modelyard.routing.fleet import DEFAULT_LOAD_S, Fleet, version_of
from modelyard.testing.in_memory import post


def fleet_of(*posts: Post) -> Fleet:
    fleet = Fleet()
    fleet.update(posts)
    return fleet


def test_a_ready_replica_makes_its_version_ready() -> None:
    fleet = fleet_of(post("gen@1", load_s=7.5))
    assert fleet.pool("gen@1").is_ready
    assert tuple(cell.app for cell in fleet.pool("gen@1").cells) == ("gen@1",)
    assert fleet.load_s("gen@1") == 7.5


def test_an_empty_fleet_knows_nothing() -> None:
    fleet = Fleet()
    assert not fleet.pool("gen@1").is_ready
    assert fleet.describe("gen@1") is None
    assert not fleet.pool("gen@1").cells
    assert fleet.load_s("gen@1") == DEFAULT_LOAD_S


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase is not Phase.READY])
def test_a_replica_in_any_other_phase_is_described_but_not_ready(phase: Phase) -> None:
    fleet = fleet_of(post("gen@1", phase=phase))
    assert not fleet.pool("gen@1").is_ready
    assert fleet.describe("gen@1") is not None


@pytest.mark.parametrize(("age_s", "ready"), [(0.0, True), (ALIVE_S - 0.1, True), (ALIVE_S, False)])
def test_a_replica_that_stopped_posting_is_not_there(age_s: float, ready: bool) -> None:
    assert fleet_of(post("gen@1", age_s=age_s)).pool("gen@1").is_ready is ready


def test_each_reading_replaces_the_last_one_but_for_descriptions_and_load_times() -> None:
    fleet = fleet_of(post("gen@1", load_s=3.0))
    description = fleet.describe("gen@1")
    fleet.update([])
    assert not fleet.pool("gen@1").is_ready
    assert not fleet.pool("gen@1").cells
    assert fleet.describe("gen@1") == description
    assert fleet.load_s("gen@1") == 3.0


def test_a_version_is_all_its_cells_with_a_ready_replica_in_name_order() -> None:
    fleet = fleet_of(
        post("gen@1--b"),
        post("gen@1"),
        post("gen@1"),
        post("gen@1--c", phase=Phase.LOADING),
        post("gen@2"),
    )
    assert tuple(cell.app for cell in fleet.pool("gen@1").cells) == ("gen@1", "gen@1--b")
    assert tuple(cell.app for cell in fleet.pool("gen@2").cells) == ("gen@2",)


def test_one_stale_replica_of_two_leaves_the_version_ready() -> None:
    assert fleet_of(post("gen@1", age_s=60), post("gen@1")).pool("gen@1").is_ready


@pytest.mark.parametrize(
    ("app", "version"),
    [("gen@1.0.0", "gen@1.0.0"), ("gen@1.0.0--b", "gen@1.0.0"), ("gen-x@1-rc", "gen-x@1-rc")],
)
def test_a_cell_belongs_to_its_version(app: str, version: str) -> None:
    assert version_of(app) == version


def test_probes_count_who_is_there_and_who_makes_progress() -> None:
    stalled = replace(post("gen@1").report, phase=Phase.FAILED, cause_kind=Cause.STALLED)
    starts = [
        post("gen@1", phase=Phase.LOADING, age_s=age_s) for age_s in (SILENT_S - 1, SILENT_S, 600.0)
    ]
    fleet = fleet_of(post("gen@1"), post("gen@1", age_s=ALIVE_S), Post(stalled, 1.0), *starts)
    assert fleet.probes("gen@1") == ProbeCounts(replicas=3, started=1, ready=1, live=2)
    fleet.update([post("gen@1"), Post(stalled, ALIVE_S)])
    assert fleet.probes("gen@1") == ProbeCounts(replicas=1, started=1, ready=1, live=1)
