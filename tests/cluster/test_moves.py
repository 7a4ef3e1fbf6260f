"""Deploying a file, and what is seen of it while replicas move."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from cluster import moves, serve_rest
from cluster.moves import BoardLoad, DeployRefused, LiveApps, load_of, ongoing_of
from cluster.observe import AppView, LastFailure, Unreachable
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import Override, Published
from modelyard.control.reading import IngressEntry, Reading
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport

RUNNING: Any = SimpleNamespace(dashboard_url="http://127.0.0.1:8265")
DRAIN = Override("drain", "m@1--b", None, "ops-1", "", 60.0)


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "ray_token", lambda: "a-token")
    monkeypatch.setattr(serve_rest, "ray_token", lambda: "a-token")


def post(app: str, ongoing: int = 0, age_s: float = 0.5, phase: Phase = Phase.READY) -> Post:
    report = ReplicaReport(app, f"{app}#1", "node", 1, phase, 10.0, ongoing=ongoing, slots=8)
    return Post(report, age_s)


def reading(*posts: Post, overrides: tuple[Override, ...] = (), ingress: bool = True) -> Reading:
    entry = IngressEntry(
        IngressPost(
            "i1",
            "d",
            True,
            in_flight=(("m@1", 5), ("n@1", 1)),
            waiting=(("m@1", "interactive", 2),),
        ),
        0.1,
    )
    published = Published(1, 1, overrides=overrides)
    return Reading(posts, (entry,) if ingress else (), (), published, 0.1, 100.0)


def view(name: str, ready: int = 1, status: str = "RUNNING", **other: Any) -> AppView:
    return AppView(name, status, other.pop("message", ""), {}, (), ready=ready, **other)


def live(apps: list[AppView], read: Reading, clock: list[float] | None = None) -> LiveApps:
    ticks = clock if clock is not None else [0.0]
    return LiveApps(RUNNING, lambda: (apps, read), now=lambda: ticks[0])


def test_a_file_is_deployed_as_serve_deploy_does() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200)

    LiveApps(RUNNING, transport=httpx.MockTransport(answer)).deploy(
        b"# a comment\napplications: [{name: x}]"
    )
    assert seen[0].method == "PUT"
    assert seen[0].url.path == "/api/serve/applications/"
    assert seen[0].headers["authorization"] == "Bearer a-token"
    assert json.loads(seen[0].content) == {"applications": [{"name": "x"}]}


def test_serves_refusal_is_said() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(500, text="no such field"))
    with pytest.raises(DeployRefused, match="no such field"):
        LiveApps(RUNNING, transport=transport).deploy(b"{}")


def test_a_silent_serve_is_said() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(DeployRefused, match="does not answer"):
        LiveApps(RUNNING, transport=httpx.MockTransport(answer)).deploy(b"{}")


def test_ready_is_what_serve_runs_and_what_says_so_itself() -> None:
    apps = [view("m@1"), view("n@1"), view("o@1", ready=0), view("p@1")]
    read = reading(post("m@1"), post("n@1", phase=Phase.DRAINING), post("p@1", age_s=60.0))
    assert live(apps, read).ready() == {"m@1": 1, "n@1": 0, "o@1": 0, "p@1": 0}


def test_nothing_is_idle_before_every_ingress_obeys_the_drain_and_replicas_posted_since() -> None:
    clock = [0.0]
    read = reading(post("m@1--b"), overrides=(DRAIN,))
    ingress = [
        IngressEntry(IngressPost("i1", "d", True, order=(1, 1)), 0.1),
        IngressEntry(IngressPost("i2", "d", True, order=(0, 9)), 0.1),
        IngressEntry(IngressPost("killed", "d", True), 60.0),
    ]

    def look() -> tuple[list[AppView], Reading]:
        return [], replace(read, ingresses=tuple(ingress))

    apps = LiveApps(RUNNING, look, now=lambda: clock[0])
    clock[0] = 30.0
    assert apps.ongoing("m@1--b") is None  # i2 sends to it still
    ingress[1] = IngressEntry(IngressPost("i2", "d", True, order=(1, 2)), 0.1)
    assert apps.ongoing("m@1--b") is None  # its post is older than that
    clock[0] += 0.6
    assert apps.ongoing("m@1--b") == 0
    ingress.append(IngressEntry(IngressPost("i3", "d", True), 0.1))
    assert apps.ongoing("m@1--b") is None  # a new ingress, without any word yet


def test_without_an_ingress_nobody_knows_whether_a_drain_is_obeyed() -> None:
    read = reading(post("m@1--b"), overrides=(DRAIN,), ingress=False)
    clock = [0.0]
    apps = live([], read, clock)
    assert apps.ongoing("m@1--b") is None
    clock[0] = 60.0
    assert apps.ongoing("m@1--b") is None


def test_an_app_that_is_not_drained_is_not_idle() -> None:
    clock = [100.0]
    apps = live([view("m@1")], reading(post("m@1")), clock)
    assert apps.ongoing("m@1") is None
    assert apps.ongoing("m@1") is None


def test_requests_of_all_replicas_count_and_those_that_are_gone_do_not() -> None:
    read = reading(post("m@1", 2), post("m@1", 3), post("m@1", 9, age_s=500.0), post("n@1", 7))
    assert ongoing_of(read, "m@1", 60.0) == 5
    assert ongoing_of(reading(), "m@1", 60.0) == 0


def test_a_board_that_is_away_leaves_everything_unknown() -> None:
    def away() -> tuple[list[AppView], Reading]:
        raise Unreachable("away")

    apps = LiveApps(RUNNING, away)
    for look in (apps.ready, lambda: apps.ongoing("m@1"), lambda: apps.failure("m@1")):
        with pytest.raises(Unreachable):
            look()
    assert apps.load() is None


def test_the_load_is_what_the_ingresses_tell_of_and_open_slots() -> None:
    freeze = Override("freeze", "*", None, "ops-1", "", 60.0)
    read = reading(
        post("m@1"), post("m@1--b"), post("n@1", phase=Phase.DRAINING), overrides=(DRAIN, freeze)
    )
    assert load_of(read) == BoardLoad({"m@1": 5, "n@1": 1}, {"m@1": 8}, 2, "ops-1")
    assert load_of(reading(post("m@1"))).frozen == ""


def test_what_a_killed_ingress_and_a_killed_replica_told_last_is_no_load() -> None:
    waiting = (("m@1", "interactive", 2),)
    killed = IngressPost("i0", "d", True, in_flight=(("m@1", 4),), waiting=waiting)
    alive = reading(post("m@1"), post("m@1--b", age_s=60.0))
    both = replace(alive, ingresses=(*alive.ingresses, IngressEntry(killed, 6.0)))
    assert load_of(both) == load_of(alive) == BoardLoad({"m@1": 5, "n@1": 1}, {"m@1": 8}, 2, "")
    assert live([], replace(alive, ingresses=(IngressEntry(killed, 6.0),))).load() is None


def test_what_is_deployed_is_told_by_app_without_those_that_are_being_deleted() -> None:
    there = {"m@1": {"deployed_app_config": {"name": "m@1"}}}
    answer = {"applications": there | {"m@1--b": {"deployed_app_config": None}}}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=answer))
    assert LiveApps(RUNNING, transport=transport).deployed() == {"m@1": {"name": "m@1"}}


def test_without_an_ingress_nobody_knows_the_load() -> None:
    assert live([], reading(ingress=False)).load() is None
    assert live([], reading()).load() is not None


def test_a_failure_is_told_in_the_replicas_words() -> None:
    failed = view("m@1", status="DEPLOY_FAILED", failure=LastFailure("no memory", None, 1.0))
    apps = live(
        [failed, view("n@1", status="DEPLOY_FAILED", message="bad"), view("o@1")], reading()
    )
    assert apps.failure("m@1") == "no memory"
    assert apps.failure("n@1") == "bad"
    assert apps.failure("o@1") == apps.failure("unknown") == ""
