"""/admin/rollouts over HTTP, with a real control behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from modelyard.control.client import Found
from modelyard.control.service import ControlService
from modelyard.control.verbs import Command
from modelyard.ingress import admin
from modelyard.tenancy.claim import verify
from modelyard.testing.asgi_client import Exchange, start
from modelyard.testing.control_world import ControlWorld
from modelyard.testing.in_memory import ALPHA_KEY, OPS_KEY, SECRET, InMemoryIngress, bearer

PATH = "/admin/rollouts/gen-1.1.0"
REASON = {"reason": "a release"}
VERBS = ["start", "pause", "resume", "approve", "promote", "rollback"]
ONE = {"unit": "p-1", "arm": "canary", "good": True}
JUDGEMENTS = {"judgements": [ONE], "source": "replay"}
ROUTES = [
    ("GET", "/admin/rollouts", None),
    ("GET", PATH, None),
    ("GET", PATH + "/history", None),
    *(("POST", f"{PATH}/{verb}", REASON) for verb in VERBS),
    ("POST", PATH + "/judgements", JUDGEMENTS),
]


class Direct:
    """Calls control in this process, under the author that the claim names."""

    def __init__(self, control: ControlService) -> None:
        self._control = control
        self.asked = 0

    async def admin(self, token: str, verb: str, args: Mapping[str, Any], request: str) -> Any:
        self.asked += 1
        return await self._control.admin(Command(verb, args, verify(token, SECRET).key_id, request))

    async def find_request(self, request_id: str) -> Found:
        return Found((), 0, 0)


class Site:
    def __init__(self, world: ControlWorld, control: ControlService) -> None:
        self.world, self.service, self.control = world, control, Direct(control)
        self.ingress = InMemoryIngress()
        admin.add_routes(self.ingress.app, self.ingress.pipeline, self.control)

    async def ask(
        self, method: str, path: str, body: Any = None, key: str | None = OPS_KEY, **headers: str
    ) -> Exchange:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        sent |= bearer(key) if key else {}
        return await start(self.ingress.app, method, path, body=body, headers=sent).finished()


@pytest.fixture
async def site() -> Site:
    world = ControlWorld()
    return Site(world, await world.started())


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_every_route_wants_the_role_admin(
    site: Site, method: str, path: str, body: Any
) -> None:
    assert (await site.ask(method, path, body, key=None)).status == 401
    assert (await site.ask(method, path, body, key=ALPHA_KEY)).status == 403
    assert site.control.asked == 0


async def test_a_rollout_is_started_looked_at_and_rolled_back(site: Site) -> None:
    answer = await site.ask("POST", PATH + "/start", REASON)
    assert (answer.status, answer.json()) == (
        200,
        {"id": "gen-1.1.0", "phase": "Step", "percent": 0.0, "revision": 2, "published": True},
    )
    await site.world.report(site.service)
    await site.service.tick(site.world.reading())
    view = (await site.ask("GET", PATH)).json()
    assert (view["phase"], view["percent"], view["canary"]) == ("Holding", 1.0, "gen@1.1.0")
    assert (await site.ask("GET", "/admin/rollouts")).json() == {"rollouts": [view]}
    back = (await site.ask("POST", PATH + "/rollback", REASON)).json()
    assert (back["phase"], back["percent"], back["published"]) == ("RolledBack", 0, True)
    decisions = (await site.ask("GET", PATH + "/history")).json()["decisions"]
    assert [one["what"] for one in decisions] == ["started", "step", "rolled_back"]
    assert [one["author"] for one in decisions] == ["ops-1", "control", "ops-1"]


@pytest.mark.parametrize("verb", ["resume", "approve"])
async def test_a_verb_that_the_phase_does_not_allow_is_400_with_a_sentence(
    site: Site, verb: str
) -> None:
    answer = await site.ask("POST", f"{PATH}/{verb}", REASON)
    assert answer.status == 400
    error = answer.json()["error"]
    assert (error["reason"], error["param"]) == ("phase", "rollout")
    assert "is Pending" in error["message"]


async def test_an_idempotency_key_makes_a_verb_act_once(site: Site) -> None:
    for _ in range(2):
        answer = await site.ask("POST", PATH + "/start", REASON, Idempotency_Key="k-1")
        assert answer.status == 200
    assert (await site.ask("POST", PATH + "/start", REASON)).status == 400
    other = await site.ask("POST", PATH + "/pause", REASON, Idempotency_Key="k-1")
    assert other.json()["error"]["reason"] == "idempotency_key_reused"


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "x", "percent": 5}])
async def test_a_verb_without_a_reason_or_with_more_is_refused(site: Site, body: Any) -> None:
    assert (await site.ask("POST", PATH + "/start", body)).status == 400


async def test_an_unknown_rollout_is_404(site: Site) -> None:
    for method, path in (("GET", ""), ("GET", "/history"), ("POST", "/start")):
        body = REASON if method == "POST" else None
        answer = await site.ask(method, f"/admin/rollouts/r-9{path}", body)
        assert (answer.status, answer.json()["error"]["reason"]) == (404, "no_rollout")


async def test_judgements_are_taken_once_it_runs_and_refused_when_malformed(site: Site) -> None:
    path = PATH + "/judgements"
    assert (await site.ask("POST", path, JUDGEMENTS)).json() == {"taken": 0}
    await site.ask("POST", PATH + "/start", REASON)
    await site.service.tick(site.world.reading())
    many = {"judgements": [ONE | {"unit": f"p-{number}"} for number in range(1000)]}
    assert (await site.ask("POST", path, many)).json() == {"taken": 1000}
    wrongs: list[dict[str, Any]] = [
        {"judgements": []},
        {"judgements": [ONE | {"arm": "shadow"}]},
        {"judgements": [ONE | {"good": "yes"}]},
        JUDGEMENTS | {"source": "feedback"},
    ]
    for wrong in wrongs:
        assert (await site.ask("POST", path, wrong)).status == 400
