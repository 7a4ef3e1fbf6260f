"""The placement of a platform, from Serve's details as its controller gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ray.serve._private.common import ReplicaState
from ray.serve.schema import ApplicationStatus, ServeApplicationSchema

from modelyard.control.reading import Reading
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport
from placement import watched
from placement.pending import Reason
from placement.ray_state import Group, RayNode
from placement.verify import Wrong
from placement.watched import placement_of, read_placement

BUNDLE = {"CPU": 1.0, "GPU": 0.4, "gpu_mem": 9.0, "gpu_comp": 40.0}
NOW_S = 1000.0


def config(name: str, place: str | None, **args: Any) -> dict[str, Any]:
    deployment: dict[str, Any] = {"name": "Generator"}
    if place is not None:
        deployment |= {
            "ray_actor_options": {"num_cpus": 1},
            "placement_group_bundles": [BUNDLE],
            "placement_group_bundle_label_selector": [{"modelyard/place": place}],
            "autoscaling_config": {"min_replicas": 1, "max_replicas": 2},
        }
    return {
        "name": name,
        "route_prefix": None,
        "import_path": "deployments.generator:app",
        "args": {"artifact": "file:///m/gen/1.0.0"} | args,
        "deployments": [deployment],
    }


def details(record: Any, *starting: str) -> dict[str, Any]:
    replicas = [
        {"replica_id": name, "state": ReplicaState.STARTING, "start_time_s": NOW_S - 30}
        for name in starting
    ]
    return {
        "status": ApplicationStatus.RUNNING,
        "deployed_app_config": record,
        "deployments": {"Generator": {"replicas": replicas}},
    }


APPS = {
    "gen@1.0.0": details(config("gen@1.0.0", "d0")),
    "gen@1.0.0--b": details(config("gen@1.0.0--b", "d1", start_budgets={"scheduled_s": 20}), "r2"),
    "hand@1.0.0": details(config("hand@1.0.0", None)),
    "imperative": details(None),
}
NODES = (
    RayNode("n0", "d0", True, BUNDLE | {"gpu_mem": 24.0}),
    RayNode("n1", "d1", True, BUNDLE | {"gpu_mem": 24.0}, {"gpu_mem": 1.0}),
)
GROUPS = (
    Group("g1", "gen@1.0.0", "r1", False, BUNDLE, "n0"),
    Group("g2", "gen@1.0.0--b", "r2", True, BUNDLE, ""),
)


def post(app: str, replica: str, place: str, age_s: float = 0.1) -> Post:
    report = ReplicaReport(app, replica, "n0", 1, Phase.READY, 1.0)
    held = "g1" if place else ""
    return Post(replace(report, place=place, gpu_ids=("0",), placement_group=held), age_s)


READING = Reading(
    (post("gen@1.0.0", "r1", "d0"), post("hand@1.0.0", "r3", "d1")), (), (), None, None, 1.0
)


def test_what_waits_is_told_with_its_reason_and_its_own_budget() -> None:
    found = placement_of(APPS, READING, GROUPS, NODES, NOW_S)
    (one,) = found.pending
    assert (one.app, one.reason, one.waited_s, one.alarm) == (
        *("gen@1.0.0--b", Reason.FULL, 30.0),
        True,
    )
    assert [(m.app, m.kind) for m in found.mismatches] == [("gen@1.0.0--b", Wrong.MISSING)]
    assert (found.planned, found.used, found.fine) == (2, 1, False)


def test_all_as_planned_is_fine_and_what_was_written_by_hand_is_no_stray() -> None:
    apps = {name: app for name, app in APPS.items() if name != "gen@1.0.0--b"}
    found = placement_of(apps, READING, GROUPS[:1], NODES, NOW_S)
    assert found.fine
    assert (found.planned, found.used) == (1, 1)


def test_a_replica_that_is_silent_is_not_there() -> None:
    apps = {"gen@1.0.0": APPS["gen@1.0.0"]}
    gone = Reading((post("gen@1.0.0", "r1", "d0", age_s=900.0),), (), (), None, None, 1.0)
    (one,) = placement_of(apps, gone, (), NODES, NOW_S).mismatches
    assert one.kind is Wrong.MISSING


def test_one_that_failed_is_no_mismatch_of_its_replacement_and_uses_no_place_for_long() -> None:
    apps = {"gen@1.0.0": APPS["gen@1.0.0"]}
    healthy = post("gen@1.0.0", "r1", "d0")
    for age_s, used in ((0.1, 1), (90.0, 0)):
        dead = post("gen@1.0.0", "r0", "d0", age_s)
        dead = replace(dead, report=replace(dead.report, phase=Phase.FAILED))
        both = Reading((healthy, dead), (), (), None, None, 1.0)
        assert placement_of(apps, both, GROUPS[:1], NODES, NOW_S).fine
        alone = Reading((dead,), (), (), None, None, 1.0)
        assert placement_of(apps, alone, (), NODES, NOW_S).used == used


def test_the_controllers_own_record_of_an_app_is_read_as_well() -> None:
    taken = ServeApplicationSchema.model_validate(config("gen@1.0.0", "d0"))
    found = placement_of({"gen@1.0.0": details(taken)}, READING, GROUPS[:1], NODES, NOW_S)
    assert (found.mismatches, found.planned) == ((), 1)
    assert found.planned == 1


def test_ray_is_not_asked_where_nothing_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(watched, "read_groups")
    assert read_placement({"hand@1.0.0": APPS["hand@1.0.0"]}, READING, NOW_S) is None


def test_budgets_that_make_no_sense_are_the_default() -> None:
    apps = {"gen@1.0.0--b": details(config("gen@1.0.0--b", "d1", start_budgets={"x": 1}), "r2")}
    (one,) = placement_of(apps, READING, GROUPS[1:], NODES, NOW_S).pending
    assert not one.alarm


def test_an_app_that_serve_takes_away_is_no_stray() -> None:
    leaving: dict[str, Any] = {"status": "DELETING", "deployed_app_config": None, "deployments": {}}
    apps = {name: APPS[name] for name in ("gen@1.0.0",)} | {"gen@1.0.0--b": leaving}
    posts = (
        post("gen@1.0.0", "r1", "d0"),
        post("gen@1.0.0--b", "r2", "d1"),
        post("gone@1.0.0", "r3", "d1"),
    )
    reading = Reading(posts, (), (), None, None, 1.0)
    assert placement_of(apps, reading, GROUPS, NODES, NOW_S).mismatches == ()
