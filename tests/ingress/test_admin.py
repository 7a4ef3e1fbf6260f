"""/admin over HTTP, with a real control behind it: keys, bodies, errors and what takes effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from modelyard.contract.errors import from_failure
from modelyard.control.client import Found, control_down
from modelyard.control.service import ControlService
from modelyard.control.verbs import Command
from modelyard.ingress import admin
from modelyard.tenancy.claim import verify
from modelyard.testing.asgi_client import Exchange, start
from modelyard.testing.control_world import ControlWorld
from modelyard.testing.in_memory import ALPHA_KEY, OPS_KEY, SECRET, InMemoryIngress, bearer

OVERRIDE = {"kind": "freeze", "target": "gen@1.0.0", "expires_in_s": 60, "reason": "a release"}


@dataclass
class DirectControl:
    """Calls control in this process, under the author that the claim names."""

    control: ControlService | None = None
    found: Found = field(default_factory=lambda: Found((), 2, 0))
    requests: list[str] = field(default_factory=list)

    async def admin(self, token: str, verb: str, args: Mapping[str, Any], request: str) -> Any:
        self.requests.append(request)
        claim = verify(token, SECRET)
        assert "admin" in claim.roles
        if self.control is None:
            raise control_down()
        return await self.control.admin(Command(verb, args, claim.key_id, request))

    async def find_request(self, request_id: str) -> Found:
        return self.found


@pytest.fixture
def world() -> ControlWorld:
    return ControlWorld()


class Site:
    def __init__(self) -> None:
        self.ingress = InMemoryIngress()
        self.control = DirectControl()
        admin.add_routes(self.ingress.app, self.ingress.pipeline, self.control)

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = OPS_KEY,
        **headers: str,
    ) -> Exchange:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= bearer(key) if key else {}
        return await start(self.ingress.app, method, path, body=body, headers=sent).finished()


@pytest.fixture
def site(world: ControlWorld) -> Site:
    return Site()


@pytest.fixture
async def up(site: Site, world: ControlWorld) -> Site:
    site.control.control = await world.started()
    return site


ROUTES = [
    ("GET", "/admin/status", None),
    ("GET", "/admin/keys", None),
    ("POST", "/admin/keys/beta-1/revoke", {}),
    ("GET", "/admin/overrides", None),
    ("POST", "/admin/overrides", OVERRIDE),
    ("DELETE", "/admin/overrides/o-1", None),
    ("POST", "/admin/rollouts/gen-1.1.0/weight", {"percent": 5, "reason": "x"}),
    ("DELETE", "/admin/hold", None),
    ("GET", "/admin/usage", None),
    ("GET", "/admin/replicas", None),
]


@pytest.mark.parametrize(("method", "path", "body"), [*ROUTES, ("GET", "/admin/why/r-1", None)])
async def test_every_route_wants_the_role_admin(
    up: Site, method: str, path: str, body: Any
) -> None:
    assert (await up.ask(method, path, body, key=None)).status == 401
    answer = await up.ask(method, path, body, key=ALPHA_KEY)
    assert answer.status == 403
    assert answer.json()["error"]["reason"] == "role"
    assert up.control.requests == []


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_without_control_each_route_says_so_and_when_to_try_again(
    site: Site, method: str, path: str, body: Any
) -> None:
    answer = await site.ask(method, path, body)
    assert (answer.status, answer.headers["retry-after"]) == (503, "5")
    error = answer.json()["error"]
    assert (error["modelyard_code"], error["reason"]) == ("overloaded", "control_down")


async def test_an_operator_revokes_a_key_under_their_name(up: Site, world: ControlWorld) -> None:
    answer = await up.ask("POST", "/admin/keys/beta-1/revoke", {"reason": "leaked"})
    told = {"key": "beta-1", "revoked": True, "revision": 2, "published": True}
    assert answer.json() == told
    assert world.word.revoked == {"beta-1"}
    keys = {one["id"]: one for one in (await up.ask("GET", "/admin/keys")).json()["keys"]}
    assert keys["beta-1"]["revoked_by"] == "ops-1"
    assert not any("sha256" in key for key in keys.values())


async def test_a_revocation_needs_no_body(up: Site, world: ControlWorld) -> None:
    assert (await up.ask("POST", "/admin/keys/beta-1/revoke")).status == 200
    assert world.word.revoked == {"beta-1"}


async def test_an_override_is_listed_with_its_author_until_it_is_removed(
    up: Site, world: ControlWorld
) -> None:
    made = (await up.ask("POST", "/admin/overrides", OVERRIDE)).json()
    [listed] = (await up.ask("GET", "/admin/overrides")).json()["overrides"]
    assert listed == OVERRIDE | {
        "id": made["id"],
        "value": None,
        "author": "ops-1",
        "expires_in_s": 60.0,
    }
    world.now += 30
    [listed] = (await up.ask("GET", "/admin/status")).json()["overrides"]
    assert listed["expires_in_s"] == 30.0
    assert (await up.ask("DELETE", f"/admin/overrides/{made['id']}")).status == 200
    assert (await up.ask("GET", "/admin/overrides")).json() == {"overrides": []}
    assert (await up.ask("DELETE", f"/admin/overrides/{made['id']}")).status == 404


async def test_a_weight_is_set(up: Site, world: ControlWorld) -> None:
    path = "/admin/rollouts/gen-1.1.0/weight"
    answer = await up.ask("POST", path, {"percent": 25, "reason": "fine so far"})
    assert answer.json()["percent"] == 25
    assert world.word.weight("gen-1.1.0") == 25
    assert (
        await up.ask("POST", path, {"percent": 100, "reason": "x", "finish": True})
    ).status == 200
    refused = await up.ask("POST", path, {"percent": 0, "reason": "x"})
    assert (refused.status, refused.json()["error"]["reason"]) == (400, "finished")
    unknown = await up.ask("POST", "/admin/rollouts/nope/weight", {"percent": 0, "reason": "x"})
    assert unknown.status == 404


async def test_the_same_idempotency_key_acts_once(up: Site, world: ControlWorld) -> None:
    key = {"idempotency_key": "one-and-the-same"}
    first = await up.ask("POST", "/admin/overrides", OVERRIDE, **key)
    second = await up.ask("POST", "/admin/overrides", OVERRIDE, **key)
    assert first.json() == second.json()
    assert len(world.word.overrides) == 1
    other = await up.ask("POST", "/admin/overrides", OVERRIDE | {"reason": "y"}, **key)
    assert other.json()["error"]["reason"] == "idempotency_key_reused"


async def test_without_one_each_call_is_its_own(up: Site) -> None:
    for _ in range(2):
        await up.ask("POST", "/admin/overrides", OVERRIDE, x_request_id="the-same")
    assert len(set(up.control.requests)) == 2


@pytest.mark.parametrize(
    ("method", "path", "body", "param"),
    [
        ("POST", "/admin/overrides", OVERRIDE | {"author": "me"}, "author"),
        ("POST", "/admin/overrides", OVERRIDE | {"expires_in_s": "60"}, "expires_in_s"),
        ("POST", "/admin/overrides", OVERRIDE | {"value": 1}, "value"),
        ("POST", "/admin/rollouts/gen-1.1.0/weight", {"percent": 101, "reason": "x"}, "percent"),
        ("POST", "/admin/rollouts/gen-1.1.0/weight", {"percent": 1, "reason": ""}, "reason"),
        ("POST", "/admin/rollouts/a b/weight", {"percent": 1, "reason": "x"}, "rollout"),
        ("POST", "/admin/keys/beta_1/revoke", {}, "key"),
        ("GET", "/admin/usage?tenant=a%20b", None, "tenant"),
        ("GET", "/admin/usage?from=yesterday", None, "from"),
        ("GET", "/admin/keys?tenant=alpha", None, "tenant"),
        ("GET", "/admin/why/a%20b", None, "request_id"),
    ],
)
async def test_what_is_wrong_is_named(
    up: Site, method: str, path: str, body: Any, param: str
) -> None:
    answer = await up.ask(method, path.replace(" ", "%20"), body)
    assert answer.status == 400, answer.body
    assert answer.json()["error"]["param"] == param


async def test_bodies_are_bounded_json(up: Site) -> None:
    assert (await up.ask("POST", "/admin/overrides", b"x" * 20_000)).status == 413
    assert (await up.ask("POST", "/admin/overrides", b"{")).status == 400
    assert (await up.ask("POST", "/admin/overrides", b"[]")).status == 400
    assert (
        await up.ask("POST", "/admin/overrides", b"{}", content_type="text/plain")
    ).status == 415
    assert (await up.ask("PUT", "/admin/overrides", b"{}")).status == 405


async def test_why_tells_in_words_what_two_ingresses_of_a_node_both_found(site: Site) -> None:
    line = {"ts": "2026-11-30T10:00:00.000+00:00", "request_id": "r-1", "route": "/v1/generate"}
    line |= {"tenant": "alpha", "key_id": "alpha-1", "model": "chat", "version": "gen@1.0.0"}
    site.control.found = Found((line, dict(line)), 2, 0)
    answer = (await site.ask("GET", "/admin/why/r-1")).json()
    assert answer["lines"] == [line]
    assert "model chat -> gen@1.0.0" in " ".join(answer["words"][0])


async def test_why_says_how_many_ingresses_it_could_not_ask(site: Site) -> None:
    site.control.found = Found((), 2, 1)
    answer = await site.ask("GET", "/admin/why/r-1")
    assert answer.status == 404
    assert "1 of 2 ingresses did not answer" in answer.json()["error"]["message"]


def test_a_failure_of_controls_keeps_its_code() -> None:
    error = from_failure(control_down().failure())
    assert (error.status, error.reason, error.retry_after_s) == (503, "control_down", 5)
