"""What ends the wait for a deploy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from cluster.observe import AppView, LastFailure, ReplicaView
from cluster.ports import LocalPorts
from cluster.running import Running, StartFailed
from modelyard.cli.up import _require_same
from modelyard.cli.waiting import (
    FAILED_TOGETHER_S,
    _all_answer,
    _at_zero,
    _failed,
    _raise_when_told,
)
from modelyard.config.target import Deployment, read_target
from modelyard.contract.errors import ConfigError
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.phases import Phase

CONFIG = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
RUNNING = Running("r", 1, 0.0, LocalPorts(), 8000, True)


def failed(age_s: float) -> AppView:
    replica = ReplicaView("abc", Phase.FAILED, 1.0, 1.0, 0, 1, age_s, "the digest is wrong")
    return AppView("gen@1", "DEPLOYING", "", {}, (replica,))


def test_a_replica_that_failed_since_we_wait_ends_the_wait_with_its_cause() -> None:
    assert _failed([failed(age_s=3)], waited_s=10) == ["gen@1 failed to start: the digest is wrong"]


def test_a_failure_of_an_earlier_deploy_does_not() -> None:
    assert _failed([failed(age_s=30)], waited_s=10) == []


def test_a_failed_app_ends_the_wait_with_serves_last_line() -> None:
    app = AppView("gen@1", "DEPLOY_FAILED", "Traceback\nValueError: no", {}, ())
    assert _failed([app], waited_s=10) == ["gen@1 is DEPLOY_FAILED: ValueError: no"]


def test_a_failed_app_whose_replicas_have_gone_is_told_by_the_last_failure() -> None:
    failure = LastFailure("SelfTest: the text differs", Cause.START_FAILED, 240.0)
    app = AppView("gen@1", "DEPLOY_FAILED", "Serve gave up", {}, (), failure=failure)
    assert _failed([app], waited_s=10) == [
        "gen@1 failed to start 240 s ago: SelfTest: the text differs"
    ]


def test_every_app_that_failed_is_named_in_a_line_of_its_own() -> None:
    other = replace(failed(age_s=2), name="emb@1")
    assert _failed([failed(age_s=3), scaled("int@1", 1), other], waited_s=10) == [
        "gen@1 failed to start: the digest is wrong",
        "emb@1 failed to start: the digest is wrong",
    ]


def scaled(name: str, desired: int) -> AppView:
    return AppView(name, "RUNNING", "", {}, (), desired=desired)


def test_a_version_at_zero_is_not_waited_for_unless_one_of_its_cells_is_up() -> None:
    apps = [scaled("gen@1", 0), scaled("emb@1", 0), scaled("emb@1--b", 1)]
    assert _at_zero(apps) == {"gen@1"}


def test_every_alias_but_those_at_zero_must_answer(deployment: Deployment) -> None:
    asleep = deployment.table.routes["support-embed"].stable

    def answer(request: httpx.Request) -> httpx.Response:
        model = request.url.params["model"]
        return httpx.Response(503 if model == "support-embed" else 200)

    transport = httpx.MockTransport(answer)
    with httpx.Client(base_url="http://ingress", transport=transport) as http:
        assert not _all_answer(http, deployment)
        assert _all_answer(http, deployment, frozenset({asleep}))


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    return read_target(CONFIG)


def test_what_says_nothing_new_is_the_same_platform(deployment: Deployment) -> None:
    _require_same(RUNNING, deployment, None, None)
    _require_same(RUNNING, deployment, 0, False)


@pytest.mark.parametrize(
    ("running", "port_offset", "plain_proxy", "named"),
    [
        (RUNNING, 100, None, "--port-offset"),
        (RUNNING, None, True, "--plain-proxy"),
        (Running("r", 1, 0.0, LocalPorts(), 8001, True), None, None, "http_options.port"),
    ],
)
def test_what_is_fixed_at_the_start_is_refused_afterwards(
    deployment: Deployment,
    running: Running,
    port_offset: int | None,
    plain_proxy: bool | None,
    named: str,
) -> None:
    with pytest.raises(ConfigError, match=f"{named}.*make down"):
        _require_same(running, deployment, port_offset, plain_proxy)


def test_a_failed_self_test_is_told_in_one_line() -> None:
    cause = "SelfTest: golden prompt capital: the text differs:\n expected 'Paris.', got 'Lyon.'"
    replica = ReplicaView("abc", Phase.FAILED, 1.0, 1.0, 0, 1, 3, cause)
    assert _failed([AppView("gen@1", "DEPLOYING", "", {}, (replica,))], waited_s=10) == [
        "gen@1 failed to start: SelfTest: golden prompt capital: the text differs: "
        "expected 'Paris.', got 'Lyon.'"
    ]


def test_the_failures_are_told_together_once_others_had_time_to_fail_too() -> None:
    lines = ["gen@1 failed to start: no", "emb@1 failed to start: no"]
    starting = [replace(scaled("int@1", 1), starting=1)]
    _raise_when_told(lines, starting, FAILED_TOGETHER_S - 0.1)
    with pytest.raises(StartFailed, match=r"gen@1 .*: no\nemb@1 .*: no"):
        _raise_when_told(lines, starting, FAILED_TOGETHER_S)


def test_nobody_is_waited_for_when_nothing_starts() -> None:
    with pytest.raises(StartFailed, match="gen@1"):
        _raise_when_told(["gen@1 failed to start: no"], [scaled("int@1", 1)], 0.0)
