"""What a driver makes of a replica's post and of Serve's status, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ray.serve.schema import ApplicationStatus

from cluster.observe import DECIDED_GONE_S, AppView, LastFailure, _app, views_of
from cluster.replica_view import ReplicaView, replica_views, view_of
from modelyard.control.reading import Decided, Reading
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.probes import Probes
from modelyard.lifecycle.report import Post, ReplicaReport
from modelyard.lifecycle.silence import ALIVE_S, SILENT_S
from modelyard.testing.in_memory import post

NOW_S = 1_000_000.0
PHASES = ((Phase.FETCHING, 1.0), (Phase.VERIFYING, 0.5))
REPORT = ReplicaReport("gen@1.0.0", "r-1", "node-a", 41, Phase.LOADING, 2.0, PHASES)
READY = replace(REPORT, phase=Phase.READY, phase_s=60.0, ongoing=3)


def _view(report: ReplicaReport, age_s: float) -> ReplicaView:
    return view_of(Post(report, age_s))


def deployment_of(message: str = "", target: int = 1, **states: int) -> dict[str, Any]:
    replicas = [{"state": state} for state, count in states.items() for _ in range(count)]
    return {"message": message, "target_num_replicas": target, "replicas": replicas}


def app_of(message: str = "", **deployments: dict[str, Any]) -> dict[str, Any]:
    status = ApplicationStatus.DEPLOYING
    return {"status": status, "message": message, "deployments": deployments}


def app(record: dict[str, Any], decided: Decided | None = None) -> AppView:
    return _app("gen@1.0.0", record, [], decided)


def test_a_phase_goes_on_while_its_post_ages() -> None:
    view = _view(REPORT, age_s=4.0)
    assert (view.phase, view.phase_s, view.age_s) == (Phase.LOADING, 6.0, 4.0)
    assert view.total_s == 7.5


def test_a_ready_replicas_total_is_its_start_and_not_its_life() -> None:
    view = _view(READY, age_s=0.5)
    assert view.total_s == 1.5
    assert (view.phase_s, view.ongoing, view.pid) == (60.5, 3, 41)


def test_a_failed_replica_keeps_its_cause() -> None:
    assert _view(replace(REPORT, phase=Phase.FAILED, cause="no such file"), 1.0).cause == (
        "no such file"
    )


@pytest.mark.parametrize(
    ("report", "age_s", "gone"),
    [
        (READY, ALIVE_S - 0.1, False),
        (READY, ALIVE_S, True),
        (REPORT, SILENT_S - 0.1, False),
        (REPORT, SILENT_S, True),
        (replace(REPORT, phase_s=3600.0), 1.0, False),
        (replace(REPORT, phase=Phase.FAILED), 100.0, False),  # its cause is still wanted
    ],
)
def test_a_silent_replica_is_gone_in_whatever_phase(
    report: ReplicaReport, age_s: float, gone: bool
) -> None:
    assert _view(report, age_s).gone is gone


def serves(
    replicas: dict[str, tuple[str, float]],
    message: str = "",
    args: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """An app of Serve's details; of each replica its state and how long ago it was started."""
    config = {"args": {"artifact": "file:///gen"} | (args or {})}
    record = deployment_of(message) | {
        "replicas": [
            {"replica_id": name, "state": state, "start_time_s": NOW_S - ago_s, "pid": None}
            for name, (state, ago_s) in replicas.items()
        ]
    }
    return app_of(Generator=record) | {"deployed_app_config": config}


def test_a_replica_that_has_not_posted_is_scheduled_with_its_seconds() -> None:
    (view,) = replica_views(serves({"a": ("STARTING", 12.0)}), [], NOW_S)
    assert (view.replica, view.phase, view.phase_s, view.cause) == (
        "a",
        Phase.SCHEDULED,
        12.0,
        None,
    )
    assert view.probes == Probes(startup=False, readiness=False, liveness=True)


def test_one_that_waits_too_long_says_what_ray_waits_for() -> None:
    record = serves({"a": ("STARTING", 601.0)}, "needs 4 GPUs,\n 0 available")
    (view,) = replica_views(record, [], NOW_S)
    assert view.cause is not None
    assert "the phase Scheduled took longer than its budget of 600 s" in view.cause
    assert view.cause.endswith("(needs 4 GPUs, 0 available)")


def test_the_apps_own_budget_counts() -> None:
    record = serves({"a": ("STARTING", 6.0)}, args={"start_budgets": {"scheduled_s": 5}})
    (view,) = replica_views(record, [], NOW_S)
    assert "its budget of 5 s" in (view.cause or "")


def test_a_replica_that_posts_is_shown_once() -> None:
    record = serves({"r-1": ("STARTING", 12.0)})
    (view,) = replica_views(record, [Post(REPORT, 1.0)], NOW_S)
    assert view.phase is Phase.LOADING


def test_apps_without_an_artifact_are_counted_and_not_shown() -> None:
    record = serves({"a": ("STARTING", 12.0)}) | {"deployed_app_config": {"args": {}}}
    assert replica_views(record, [], NOW_S) == []


def test_a_replica_that_serve_stops_drains_before_it_says_so() -> None:
    record = serves({"r-1": ("STOPPING", 12.0)})
    (view,) = replica_views(record, [Post(READY, 0.5)], NOW_S)
    assert view.phase is Phase.DRAINING
    assert view.probes == Probes(startup=True, readiness=False, liveness=True)


def test_a_draining_replica_that_fell_silent_is_gone() -> None:
    draining = replace(READY, phase=Phase.DRAINING)
    assert not _view(draining, ALIVE_S - 0.1).gone
    assert _view(draining, ALIVE_S).gone


def test_a_view_has_the_digest_and_the_phases() -> None:
    view = view_of(Post(post("gen@1.0.0").report, 0.5))
    assert view.digest8 == post("gen@1.0.0").report.description.digest[:8]  # type: ignore[union-attr]
    assert view.phases == post("gen@1.0.0").report.phases


def test_an_app_shows_its_living_replicas_in_order() -> None:
    posts = [
        Post(replace(READY, replica="c"), 0.0),
        Post(replace(READY, replica="b"), 99.0),
        Post(replace(READY, replica="a"), 0.0),
        Post(replace(READY, replica="d", app="other@1.0.0"), 0.0),
    ]
    (view,) = views_of({"gen@1.0.0": app_of()}, reading(*posts))
    assert [replica.replica for replica in view.replicas] == ["a", "c"]
    assert (view.name, view.status, view.message) == ("gen@1.0.0", "DEPLOYING", "")


def test_apps_come_by_name() -> None:
    apps = {"b": app_of(), "a": app_of()}
    assert [view.name for view in views_of(apps, reading())] == ["a", "b"]


def test_an_app_counts_its_replicas_by_state_over_its_deployments() -> None:
    record = app_of(
        Ingress=deployment_of(target=3, RUNNING=2, STARTING=1),
        Generator=deployment_of(target=2, RUNNING=1, STOPPING=1),
    )
    view = app(record)
    assert view.states == {"RUNNING": 3, "STARTING": 1, "STOPPING": 1}
    assert (view.ready, view.starting, view.desired) == (3, 1, 5)


def test_serves_rest_says_states_as_plain_words() -> None:
    assert app(app_of() | {"status": "RUNNING"}).status == "RUNNING"


def test_a_scaled_app_says_why() -> None:
    decided = Decided("gen@1.0.0", 3, "12 waiting + 30 ongoing / 24")
    (view,) = views_of(
        {"gen@1.0.0": app_of(Generator=deployment_of(target=3))},
        replace(reading(), decisions=(Decided("other@1", 9, "no"), decided)),
    )
    assert (view.desired, view.why) == (3, "12 waiting + 30 ongoing / 24")


def test_what_serve_has_not_followed_yet_is_told() -> None:
    record = app_of(Generator=deployment_of(target=3))
    assert app(record, Decided("gen@1.0.0", 0, "idle")).why == "idle: soon 0"


def test_a_fixed_number_of_replicas_has_no_reason() -> None:
    assert app(app_of(Generator=deployment_of(target=3))).why == ""


def test_a_reason_of_a_controller_that_fell_silent_is_not_shown() -> None:
    old = Decided("gen@1.0.0", 3, "idle", DECIDED_GONE_S + 0.1)
    assert app(app_of(Generator=deployment_of(target=3)), old).why == ""


def test_the_apps_own_message_stands_before_its_deployments() -> None:
    quiet, loud = deployment_of(), deployment_of("no node has a GPU")
    assert app(app_of("cannot import it", A=quiet, B=loud)).message == "cannot import it"
    assert app(app_of("", A=quiet, B=loud)).message == "no node has a GPU"


def reading(*posts: Post) -> Reading:
    return Reading(posts, (), (), None, None, up_s=60.0)


def test_an_apps_last_failure_is_shown_and_counts_as_no_replica() -> None:
    failed = replace(REPORT, phase=Phase.FAILED, cause="no", cause_kind=Cause.START_FAILED)
    reading = Reading((), (), (), None, None, 0.0, failures=(Post(failed, 240.0),))
    (view,) = views_of({"gen@1.0.0": app_of()}, reading)
    assert view.replicas == ()
    assert view.failure == LastFailure("no", Cause.START_FAILED, 240.0)


def test_a_view_says_what_its_report_says_of_the_watchdog() -> None:
    stalled = replace(READY, cause_kind=Cause.STALLED, cause="no step", stall_after_s=10.0)
    view = _view(stalled, 0.5)
    assert (view.cause_kind, view.stall_after_s) == (Cause.STALLED, 10.0)
