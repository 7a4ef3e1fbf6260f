from dataclasses import replace

import httpx
import pytest

from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post
from modelyard.testing.in_memory import InMemoryIngress, post

PROBES = ["/health/live", "/health/startup", "/health/ready", "/health"]


async def got(ingress: InMemoryIngress, path: str) -> httpx.Response:
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        return await http.get(path)


@pytest.mark.parametrize("path", PROBES)
async def test_a_probe_needs_no_key(path: str) -> None:
    response = await got(InMemoryIngress(), path)
    assert response.status_code == 200
    assert set(response.json()) <= {"status", "models"}
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


async def test_the_aggregate_counts_and_names_nobody() -> None:
    ingress = InMemoryIngress()
    ingress.fleet.update([post("gen@1.0.0"), post("gen@1.0.0", phase=Phase.LOADING, replica="r2")])
    total = len(ingress.pipeline.the_table().routes)
    whole = (await got(ingress, "/health/ready")).json()
    assert whole["models"]["total"] == total
    assert whole["models"]["ready"] < total
    for path in ("/health/ready", "/health/startup", "/health/ready?model=chat"):
        text = (await got(ingress, path)).text
        assert "r1" not in text
        assert "n1" not in text


async def test_one_models_replicas_are_counted_by_probe() -> None:
    ingress = InMemoryIngress()
    version = ingress.pipeline.the_table().routes["chat"].stable
    loading = post(version, phase=Phase.LOADING, replica="r2")
    ingress.fleet.update([post(version), loading])
    counts = {"replicas": 2, "started": 1, "ready": 1, "live": 2}
    for path in ("/health/ready?model=chat", "/health/startup?model=chat"):
        assert (await got(ingress, path)).json()["replicas"] == counts


async def test_a_model_that_was_ready_once_has_started_for_good() -> None:
    ingress = InMemoryIngress()
    assert (await got(ingress, "/health/startup?model=chat")).status_code == 200
    ingress.fleet.update([])
    assert (await got(ingress, "/health/startup?model=chat")).status_code == 200
    assert (await got(ingress, "/health/ready?model=chat")).status_code == 503
    assert (await got(ingress, "/health/startup?model=gone")).status_code == 404


async def test_a_model_that_loads_for_the_first_time_has_not_started() -> None:
    ingress = InMemoryIngress()
    ingress.fleet._started.clear()
    version = ingress.pipeline.the_table().routes["chat"].stable
    ingress.fleet.update([post(version, phase=Phase.WARMING)])
    response = await got(ingress, "/health/startup?model=chat")
    assert (response.status_code, response.json()["error"]["reason"]) == (503, "not_loaded")


async def test_overload_fails_no_probe() -> None:
    """A full fleet that left rotation would be empty at the moment of its highest demand."""
    ingress = InMemoryIngress()
    version = ingress.pipeline.the_table().routes["chat"].stable
    full = post(version)
    ingress.fleet.update([Post(replace(full.report, ongoing=10_000), full.age_s)])
    for path in ("/health/live", "/health/ready?model=chat", "/health/startup?model=chat"):
        assert (await got(ingress, path)).status_code == 200
