"""What a driver makes of a replica's post and of Serve's status, without a cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ray.serve._private.common import DeploymentStatus, DeploymentStatusTrigger
from ray.serve.schema import (
    ApplicationStatus,
    ApplicationStatusOverview,
    DeploymentStatusOverview,
)

from cluster.observe import ReplicaView, _app, _view
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport
from modelyard.routing.fleet import ALIVE_S

PHASES = ((Phase.FETCHING, 1.0), (Phase.VERIFYING, 0.5))
REPORT = ReplicaReport("gen@1.0.0", "r-1", "node-a", 41, Phase.LOADING, 2.0, PHASES)
READY = replace(REPORT, phase=Phase.READY, phase_s=60.0, ongoing=3)


def deployment_of(message: str = "", **states: int) -> DeploymentStatusOverview:
    # Serve's annotation says ReplicaState; what `serve.status` puts there are their values.
    counts: Any = states
    return DeploymentStatusOverview(
        DeploymentStatus.UPDATING,
        DeploymentStatusTrigger.UNSPECIFIED,
        counts,
        message,
    )


def app_of(message: str = "", **deployments: DeploymentStatusOverview) -> Any:
    return ApplicationStatusOverview(ApplicationStatus.DEPLOYING, message, 0.0, deployments)


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
    def posted(replica: str, age_s: float = 0.0) -> ReplicaView:
        return _view(replace(READY, replica=replica), age_s)

    view = _app("gen@1.0.0", app_of(), [posted("c"), posted("b", 99.0), posted("a")])
    assert [replica.replica for replica in view.replicas] == ["a", "c"]
    assert (view.name, view.status, view.message, view.states) == (
        "gen@1.0.0",
        "DEPLOYING",
        "",
        {},
    )


def test_an_app_counts_its_replicas_by_state_over_its_deployments() -> None:
    app = app_of(Ingress=deployment_of(RUNNING=2, STARTING=1), Generator=deployment_of(RUNNING=1))
    assert _app("ingress", app, []).states == {"RUNNING": 3, "STARTING": 1}


def test_the_apps_own_message_stands_before_its_deployments() -> None:
    quiet, loud = deployment_of(), deployment_of("no node has a GPU")
    assert _app("a", app_of("cannot import it", A=quiet, B=loud), []).message == "cannot import it"
    assert _app("a", app_of("", A=quiet, B=loud), []).message == "no node has a GPU"
