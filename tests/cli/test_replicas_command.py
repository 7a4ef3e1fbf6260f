"""`modelyard replicas`, against a platform that a test answers for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from modelyard.cli import replicas as command
from modelyard.cli.admin_client import AdminClient
from modelyard.cli.main import app
from modelyard.cli.replica_orders import FOLLOWS_WITHIN_S, NotDone, ReplicaOrders

APP = "gen@1.0.0"
FLOOR = {"id": "o-1", "kind": "floor", "target": APP, "author": "ops-1"}


def replica(name: str, **changes: Any) -> dict[str, Any]:
    record = {
        "replica": name,
        "app": APP,
        "node": "0123456789abcdef",
        "phase": "Ready",
        "phase_s": 61.0,
        "ready": True,
        "ongoing": 2,
        "heard_s": 0.4,
        "cause": None,
        "drained": None,
    }
    return record | changes


class Platform:
    """A clock, and replicas that change as it runs: `at` says what happens at a second."""

    def __init__(self, *replicas: dict[str, Any], max_replicas: int = 2) -> None:
        self.replicas = list(replicas)
        self.scaling = {APP: {"replicas": len(replicas), "why": "idle"}}
        self.overrides: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.max_replicas = max_replicas
        self.at: dict[float, Callable[[], None]] = {}
        self.now = 0.0

    def get(self, path: str) -> Any:
        if path == "/admin/overrides":
            return {"overrides": list(self.overrides)}
        assert path == "/admin/replicas"
        return {"replicas": [dict(one) for one in self.replicas], "scaling": self.scaling}

    def post(self, path: str, body: dict[str, Any]) -> Any:
        assert path == "/admin/overrides"
        self.asked.append((body["kind"], body["target"]))
        self.overrides.append(body | {"id": f"o-{len(self.asked)}"})
        if body["kind"] == "floor":
            replicas = min(int(body["value"]), self.max_replicas)
            why = f"floor by ops-1, at most max_replicas {self.max_replicas}"
            self.scaling = {APP: {"replicas": replicas, "why": why}}
        return self.overrides[-1]

    def delete(self, path: str) -> Any:
        identifier = path.rpartition("/")[2]
        self.overrides = [one for one in self.overrides if one["id"] != identifier]
        self.asked.append(("delete", identifier))
        return {}

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for second in [second for second in self.at if second <= self.now]:
            self.at.pop(second)()

    def orders(self, within_s: float = 60.0) -> ReplicaOrders:
        return ReplicaOrders(self, within_s, lambda: self.now, self.sleep)

    def leaves(self, name: str) -> Callable[[], None]:
        def leave() -> None:
            assert ("drain", f"replica:{name}") in self.asked, "it left before it was told to"
            self.replicas = [one for one in self.replicas if one["replica"] != name]

        return leave


def test_a_drain_is_done_when_the_replica_has_left() -> None:
    platform = Platform(replica("r1"), replica("r2"))
    platform.at[7.0] = platform.leaves("r1")
    platform.orders().drain(platform.orders().find("r1"), "a slow disk")
    assert platform.now == 7.0
    assert platform.asked == [("drain", "replica:r1"), ("delete", "o-1")]


def test_a_replica_that_works_on_is_said() -> None:
    platform = Platform(replica("r1"))
    with pytest.raises(
        NotDone, match="r1 was told to leave and still works on requests after 60 s"
    ):
        platform.orders().drain(platform.orders().find("r1"), "a slow disk")


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        ("Ready", r"is not out of routing yet \(that takes about 6 s\) after 2 s"),
        ("Draining", "has not ended yet, though it works on no request after 2 s"),
    ],
)
def test_a_replica_without_requests_is_not_said_to_work_on_them(phase: str, words: str) -> None:
    orders = Platform(replica("r1", ongoing=0, phase=phase)).orders(2.0)
    with pytest.raises(NotDone, match=f"r1 was told to leave and {words}"):
        orders.drain(orders.find("r1"), "a slow disk")


@pytest.mark.parametrize(("ready", "expires_s"), [(True, 120.0), (False, 3600.0)])
def test_an_order_lives_until_it_was_taken(ready: bool, expires_s: float) -> None:
    platform = Platform(replica("r1", ready=ready))
    platform.orders().drain(platform.orders().find("r1"), "a slow disk", wait=False)
    assert [one["expires_in_s"] for one in platform.overrides] == [expires_s]


def test_a_replacement_is_ready_before_the_old_one_is_told_to_leave() -> None:
    platform = Platform(replica("r1"))
    new = replica("r2", ready=False, phase="Loading")
    platform.at[3.0] = lambda: platform.replicas.append(new)
    platform.at[20.0] = lambda: new.update(ready=True)
    platform.at[26.0] = platform.leaves("r1")
    assert platform.orders().replace(platform.orders().find("r1"), "a slow disk") == "r2"
    assert [kind for kind, _ in platform.asked] == ["floor", "drain", "delete", "delete"]
    assert platform.overrides == []
    assert platform.now == 26.0


def test_a_replacement_without_room_is_refused_in_words_and_nothing_is_left_behind() -> None:
    platform = Platform(replica("r1"), max_replicas=1)
    with pytest.raises(NotDone, match=r"no room for one more replica .*max_replicas 1"):
        platform.orders().replace(platform.orders().find("r1"), "a slow disk")
    assert platform.now == FOLLOWS_WITHIN_S
    assert platform.overrides == []


def test_a_replacement_that_never_becomes_ready_leaves_the_old_one_alone() -> None:
    platform = Platform(replica("r1"))
    with pytest.raises(NotDone, match=r"no new replica of gen@1\.0\.0 became ready after 60 s"):
        platform.orders().replace(platform.orders().find("r1"), "a slow disk")
    assert [kind for kind, _ in platform.asked] == ["floor", "delete"]


def test_a_fixed_number_of_replicas_has_no_room() -> None:
    platform = Platform(replica("r1"))
    platform.scaling = {}
    with pytest.raises(NotDone, match="fixed number of replicas"):
        platform.orders().replace(platform.orders().find("r1"), "a slow disk")


def test_an_operators_bound_is_not_overwritten() -> None:
    platform = Platform(replica("r1"))
    platform.overrides = [FLOOR]
    with pytest.raises(NotDone, match=r"a floor by ops-1 \(o-1\): remove it first"):
        platform.orders().replace(platform.orders().find("r1"), "a slow disk")
    assert platform.overrides == [FLOOR]


def test_a_beginning_is_enough_and_an_exact_id_beats_it() -> None:
    orders = Platform(replica("abc1"), replica("abd2"), replica("abd23")).orders()
    assert orders.find("abc")["replica"] == "abc1"
    assert orders.find("abd2")["replica"] == "abd2"
    for name, words in (
        ("ab", r"3 replicas begin with .* \(abc1, abd2, abd23\)"),
        ("x", "no replica begins with 'x': see"),
    ):
        with pytest.raises(NotDone, match=words):
            orders.find(name)


@pytest.mark.parametrize("name", ["", " "])
def test_the_only_replica_is_not_meant_by_no_name(name: str) -> None:
    with pytest.raises(NotDone, match="no replica is named"):
        Platform(replica("r1")).orders().find(name)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[httpx.Request]:
    """The platform's HTTP side, with one replica that is gone when asked for the second time."""
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if request.method == "POST":
            return httpx.Response(200, json={"id": "o-1"})
        first = len(asked) == 1
        found = [replica("r1", drained="drained by ops-1: old")] if first else []
        return httpx.Response(200, json={"replicas": found, "scaling": {}})

    client = AdminClient("http://test", "my_ops-1_secret", httpx.MockTransport(answer))
    made = type("Client", (), {"from_settings": staticmethod(lambda settings: client)})
    monkeypatch.setattr(command, "AdminClient", made)
    monkeypatch.setenv("MODELYARD_HOME", str(tmp_path))
    return asked


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["replicas", *arguments])


def test_the_list_names_what_an_operator_needs(site: list[httpx.Request]) -> None:
    assert run("list").stdout == (
        "r1  gen@1.0.0  Ready for 61 s  2 ongoing  node 01234567  drained by ops-1: old\n"
    )


def test_the_list_as_json(site: list[httpx.Request]) -> None:
    [record] = json.loads(run("list", "-o", "json").stdout)
    assert record["replica"] == "r1"


def test_a_drain_says_what_came_of_it(site: list[httpx.Request]) -> None:
    done = run("drain", "r1", "--reason", "a slow disk", "-o", "json")
    assert json.loads(done.stdout) == {"replica": "r1", "app": APP, "left": True}
    assert done.exit_code == 0
    body = json.loads(site[1].content)
    assert (body["kind"], body["target"], body["reason"]) == ("drain", "replica:r1", "a slow disk")


def test_a_drain_need_not_be_waited_for(site: list[httpx.Request]) -> None:
    assert run("drain", "r1", "--reason", "x", "--no-wait").stdout == "r1 was told to leave\n"


def test_an_unknown_replica_is_an_error_of_ours(site: list[httpx.Request]) -> None:
    done = run("replace", "r9", "--reason", "x")
    assert done.exit_code == 1
    assert isinstance(done.exception, NotDone)
