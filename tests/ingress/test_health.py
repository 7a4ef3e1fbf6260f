import httpx
import pytest

from modelyard.testing.in_memory import InMemoryIngress

PROBES = ["/health/live", "/health/startup", "/health/ready", "/health"]


async def got(ingress: InMemoryIngress, path: str) -> httpx.Response:
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        return await http.get(path)


@pytest.mark.parametrize("path", PROBES)
async def test_a_probe_needs_no_key(path: str) -> None:
    response = await got(InMemoryIngress(), path)
    assert response.status_code == 200
    assert set(response.json()) == {"status"}
    assert response.headers["x-request-id"]


@pytest.mark.parametrize("path", PROBES)
async def test_without_a_table_only_live_says_yes(path: str) -> None:
    ingress = InMemoryIngress()
    ingress.pipeline.table = None
    response = await got(ingress, path)
    if path == "/health/live":
        assert response.status_code == 200
    else:
        assert response.status_code == 503
        assert response.headers["retry-after"] == "1"
        assert response.json()["error"]["reason"] == "starting"


async def test_no_unready_model_fails_the_whole() -> None:
    ingress = InMemoryIngress()
    ingress.fleet.update([])
    assert (await got(ingress, "/health/ready")).status_code == 200


async def test_one_model_can_be_asked_for() -> None:
    ingress = InMemoryIngress()
    assert (await got(ingress, "/health/ready?model=team/embed")).status_code == 200
    assert (await got(ingress, "/health?model=chat")).status_code == 200
    assert (await got(ingress, "/health/ready?model=gone")).status_code == 404
    assert (await got(ingress, "/health/ready?model=")).status_code == 404
    ingress.fleet.update([])
    response = await got(ingress, "/health/ready?model=chat")
    assert (response.status_code, response.headers["retry-after"]) == (503, "4")


async def test_another_method_is_405() -> None:
    transport = httpx.ASGITransport(InMemoryIngress().app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        response = await http.post("/health/ready")
    assert response.status_code == 405
    assert response.json()["error"]["modelyard_code"] == "invalid_request"
