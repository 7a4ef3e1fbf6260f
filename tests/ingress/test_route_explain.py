import json
from typing import Any

import httpx
import pytest

from modelyard.contract.envelope import Item, Usage
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    EVALUATOR_KEY,
    OPS_KEY,
    InMemoryIngress,
    bearer,
)

EMBED = {"tenant": "beta", "model": "team/embed"}


async def got(
    ingress: InMemoryIngress, asked: dict[str, str], key: str | None = OPS_KEY
) -> httpx.Response:
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        headers = bearer(key) if key else {}
        return await http.get("/admin/route", params=asked, headers=headers)


async def test_a_route_is_explained_in_words_and_in_facts() -> None:
    response = await got(InMemoryIngress(), {"tenant": "alpha", "model": "chat"})
    assert response.status_code == 200
    record = response.json()
    assert [step["name"] for step in record["steps"]] == ["region", "alias", "arm", "pool", "cell"]
    assert record["steps"][-1]["facts"]["cell"] == "gen@1.0.0"
    assert record["lines"][2] == "arm     stable, gen@1.0.0: the route has no rollout"


async def test_the_kind_of_the_model_is_found() -> None:
    record = (await got(InMemoryIngress(), EMBED)).json()
    assert record["steps"][-1]["name"] == "cell"


async def test_a_conversation_has_its_replica() -> None:
    asked = {"tenant": "alpha", "model": "chat", "conversation": "c-1"}
    steps = [(await got(InMemoryIngress(), asked)).json()["steps"] for _ in range(2)]
    assert steps[0] == steps[1]
    assert steps[0][-1]["facts"]["replica"] == "r1"


async def test_a_refusal_is_an_answer() -> None:
    response = await got(InMemoryIngress(), {"tenant": "beta", "model": "chat"})
    assert response.status_code == 200
    refused = response.json()["steps"][-1]
    assert refused["facts"] == {"status": 403, "reason": "entitlement"}


@pytest.mark.parametrize("asked", [{}, {"tenant": "nobody", "model": "chat"}])
async def test_an_unknown_tenant_is_404(asked: dict[str, str]) -> None:
    assert (await got(InMemoryIngress(), asked)).status_code == 404


@pytest.mark.parametrize(("key", "status"), [(None, 401), (ALPHA_KEY, 403), (EVALUATOR_KEY, 403)])
async def test_only_an_admin_may_ask(key: str | None, status: int) -> None:
    assert (await got(InMemoryIngress(), EMBED, key)).status_code == status


async def embedded(key: str, headers: dict[str, str]) -> httpx.Response:
    ingress = InMemoryIngress([Item(b"{}", 0, Usage(1, 0))])
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        body: dict[str, Any] = {"model": "team/embed", "input": "a"}
        response = await http.post("/v1/embeddings", json=body, headers=bearer(key) | headers)
    assert response.status_code == 200
    return response


async def test_an_evaluator_who_asks_is_told_on_the_answer_itself() -> None:
    response = await embedded(EVALUATOR_KEY, {"X-Modelyard-Debug": "1"})
    facts = json.loads(response.headers["x-modelyard-route"])
    assert facts["arm"]["version"] == response.headers["x-model-version"]
    assert facts["cell"]["cell"] == "emb@1.0.0"


@pytest.mark.parametrize(
    ("key", "headers"), [(ALPHA_KEY, {"X-Modelyard-Debug": "1"}), (EVALUATOR_KEY, {})]
)
async def test_nobody_else_is(key: str, headers: dict[str, str]) -> None:
    assert "x-modelyard-route" not in (await embedded(key, headers)).headers
