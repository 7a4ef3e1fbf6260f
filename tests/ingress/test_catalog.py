import httpx
import pytest

from modelyard.lifecycle.phases import Phase
from modelyard.routing.fleet import Fleet
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    BETA_KEY,
    OPS_KEY,
    InMemoryIngress,
    bearer,
    post,
)


async def got(ingress: InMemoryIngress, path: str, key: str | None = ALPHA_KEY) -> httpx.Response:
    transport = httpx.ASGITransport(ingress.app)
    headers = bearer(key) if key else {}
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        return await http.get(path, headers=headers)


async def test_two_tenants_see_different_models() -> None:
    ingress = InMemoryIngress()
    alpha = (await got(ingress, "/v1/models")).json()
    beta = (await got(ingress, "/v1/models", BETA_KEY)).json()
    assert alpha["object"] == "list"
    assert [model["id"] for model in alpha["data"]] == ["chat", "team/embed", "intent", "rerank"]
    assert [model["id"] for model in beta["data"]] == ["team/embed"]


async def test_a_model_says_its_kind_and_limits() -> None:
    response = await got(InMemoryIngress(), "/v1/models/chat")
    assert response.json() == {
        "id": "chat",
        "object": "model",
        "created": 0,
        "owned_by": "modelyard",
        "ready": True,
        "kind": "generator",
        "max_model_len": 2048,
        "max_output_tokens": 512,
    }
    assert response.headers["x-request-id"]


async def test_an_id_may_hold_a_slash_written_either_way() -> None:
    ingress = InMemoryIngress()
    for path in ("/v1/models/team/embed", "/v1/models/team%2Fembed"):
        response = await got(ingress, path, BETA_KEY)
        assert (response.status_code, response.json()["id"]) == (200, "team/embed")
        assert response.json()["max_output_tokens"] is None


@pytest.mark.parametrize("model", ["gone", "chat", "", "team", "gen@1.0.0"])
async def test_a_model_of_others_looks_like_one_that_does_not_exist(model: str) -> None:
    response = await got(InMemoryIngress(), f"/v1/models/{model}", BETA_KEY)
    assert response.status_code == 404
    error = response.json()["error"]
    assert (error["code"], error["param"]) == ("model_not_found", "model")


async def test_a_restarting_model_stays_in_the_list_with_its_limits() -> None:
    ingress = InMemoryIngress()
    ingress.fleet.update([post("gen@1.0.0", phase=Phase.LOADING)])
    chat = (await got(ingress, "/v1/models/chat")).json()
    assert (chat["ready"], chat["kind"], chat["max_model_len"]) == (False, "generator", 2048)


async def test_a_model_that_was_never_loaded_is_listed_without_its_limits() -> None:
    ingress = InMemoryIngress()
    ingress.pipeline.fleet = Fleet()
    chat = (await got(ingress, "/v1/models/chat")).json()
    assert (chat["ready"], chat["kind"], chat["max_output_tokens"]) == (False, None, None)


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/chat"])
@pytest.mark.parametrize(("key", "status"), [(None, 401), ("my_x-1_wrong", 401), (OPS_KEY, 403)])
async def test_the_models_need_a_key_that_may_invoke(
    path: str, key: str | None, status: int
) -> None:
    response = await got(InMemoryIngress(), path, key)
    assert response.status_code == status
    assert response.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
@pytest.mark.parametrize(("key", "status"), [(None, 401), (ALPHA_KEY, 403), (OPS_KEY, 200)])
async def test_the_documentation_needs_an_admin(path: str, key: str | None, status: int) -> None:
    response = await got(InMemoryIngress(), path, key)
    assert response.status_code == status
    assert response.headers["x-request-id"]


async def test_a_catalog_request_is_not_a_model_request() -> None:
    ingress = InMemoryIngress()
    await got(ingress, "/v1/models")
    assert ingress.records == []
