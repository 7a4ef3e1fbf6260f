"""What callers of a model that shares its memory get while it is not loaded."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from modelyard.config.table import parse_table
from modelyard.contract.operations import Kind
from modelyard.control.ingress_post import Wish
from modelyard.control.published import Override, Published
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    InMemoryIngress,
    bearer,
    post,
    table_record,
)

GEN = "gen@1.0.0"
AREAS = {"d1": {"memory_gb": 10, "models": {GEN: 6}}}
BODY = {"model": "chat", "messages": [{"role": "user", "content": "hello"}]}


def an_ingress(*there: str, now: float = 100.0) -> InMemoryIngress:
    """With a ready replica of each of these, and load times of 4 s known of all."""
    table = parse_table(table_record(swap_areas=AREAS))
    made = InMemoryIngress(now=lambda: now, table=table)
    made.fleet.update([post(version, Kind.GENERATOR) for version in there])
    return made


def client_of(ingress: InMemoryIngress) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(ingress.app), base_url="http://x")


async def asked(ingress: InMemoryIngress) -> httpx.Response:
    async with client_of(ingress) as client:
        return await client.post("/v1/chat/completions", json=BODY, headers=bearer(ALPHA_KEY))


def reason(response: httpx.Response) -> Any:
    return response.json()["error"]["reason"]


async def test_a_model_that_is_not_loaded_fails_fast_and_wishes_one_load_of_control() -> None:
    ingress = an_ingress()
    for _ in range(3):
        response = await asked(ingress)
        assert (response.status_code, reason(response)) == (503, "not_loaded")
        assert response.headers["retry-after"] == "4"
    assert ingress.pipeline.post().wishes == (Wish(GEN, 1, 8.0, by_control=True),)


async def test_retry_after_counts_the_wait_for_memory_and_the_wish_outlasts_it() -> None:
    ingress = an_ingress()
    ingress.pipeline.obey(Published(1, 1, loads=((GEN, 42.0),)))
    response = await asked(ingress)
    assert response.headers["retry-after"] == "42"
    assert ingress.pipeline.post().wishes == (Wish(GEN, 1, 84.0, by_control=True),)
    async with client_of(ingress) as client:
        probe = await client.get("/health/ready?model=chat")
    assert (probe.status_code, probe.headers["retry-after"]) == (503, "42")


@pytest.mark.parametrize(("author", "expected"), [("swap:d1", "not_loaded"), ("ops-1", "drained")])
async def test_a_model_that_makes_room_is_not_loaded_and_one_that_an_operator_drained_is_drained(
    author: str, expected: str
) -> None:
    ingress = an_ingress(GEN)
    drain = Override("drain", GEN, None, author, "a test", 60.0)
    ingress.pipeline.obey(Published(1, 1, overrides=(drain,)))
    response = await asked(ingress)
    assert (response.status_code, reason(response)) == (503, expected)
    assert bool(ingress.pipeline.post().wishes) == (expected == "not_loaded")


async def test_a_model_outside_the_areas_is_loaded_by_scaling() -> None:
    ingress = an_ingress()
    ingress.pipeline.adopt(parse_table(table_record()))
    await asked(ingress)
    assert ingress.pipeline.post().wishes == (Wish(GEN, 1, 8.0),)
