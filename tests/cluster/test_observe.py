"""What a driver makes of a replica's post and of Serve's status, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ray.serve.schema import ApplicationStatus

from cluster.observe import DECIDED_GONE_S, AppView, _app, _view, views_of
from modelyard.control.reading import Decided, Reading
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport
from modelyard.routing.fleet import ALIVE_S

PHASES = ((Phase.FETCHING, 1.0), (Phase.VERIFYING, 0.5))
REPORT = ReplicaReport("gen@1.0.0", "r-1", "node-a", 41, Phase.LOADING, 2.0, PHASES)
READY = replace(REPORT, phase=Phase.READY, phase_s=60.0, ongoing=3)


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
        (READY, ALIVE_S, False),
        (READY, ALIVE_S + 0.1, True),
        (REPORT, ALIVE_S * 10, False),  # a long phase is posted once
    ],
)
def test_only_a_silent_ready_replica_is_gone(
    report: ReplicaReport, age_s: float, gone: bool
) -> None:
    assert _view(report, age_s).gone is gone


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
