"""Requests that only one arm of a route can answer, through the whole ingress."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Failure, Item, Usage
from modelyard.contract.errors import ReplicaDied
from modelyard.control.published import Published
from modelyard.lifecycle.report import Post
from modelyard.testing.in_memory import ALPHA_KEY, InMemoryIngress, bearer, post, table_record

TOO_LONG = Failure("invalid_request", "the prompt is too long", wire_code="context_length_exceeded")
ANSWER = Item(b"{}", 0, Usage(1, 1))


def of(app: str, context: int, output: int) -> Post:
    made = post(app)
    assert made.report.description is not None
    description = replace(
        made.report.description, max_context_tokens=context, max_output_tokens=output
    )
    return replace(made, report=replace(made.report, description=description))


def split(*script: Any, percent: float = 1.0) -> InMemoryIngress:
    """v1 knows 2048 tokens and makes 512, v2 8192 and 1024."""
    chat = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": {"id": "r-1"}}
    tenants = {"alpha": {"region": "eu", "models": ["*"]}, "beta": {"region": "eu"}}
    table = parse_table(table_record(routes={"chat": chat}, tenants=tenants))
    ingress = InMemoryIngress(*script, table=table)
    ingress.fleet.update([of("gen@1.0.0", 2048, 512), of("gen@2.0.0", 8192, 1024)])
    ingress.pipeline.in_force.take(Published(1, 1, (("r-1", percent),)))
    return ingress


async def asked(ingress: InMemoryIngress, **changes: Any) -> httpx.Response:
    body = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]} | changes
    # This conversation draws 0.88 of r-1, so that at 1 % it is on stable.
    headers = bearer(ALPHA_KEY) | {"X-Conversation-Id": "c-1"}
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        return await http.post("/v1/chat/completions", json=body, headers=headers)


async def test_a_prompt_too_long_for_stable_is_answered_by_the_canary() -> None:
    ingress = split([TOO_LONG], [ANSWER])
    response = await asked(ingress)
    assert response.status_code == 200
    assert response.headers["x-model-version"] == "gen@2.0.0"
    assert response.headers["x-rollout-arm"] == "canary"
    assert ingress.records[-1].version == "gen@2.0.0"


async def test_too_long_for_both_is_told_once() -> None:
    response = await asked(split([TOO_LONG], [TOO_LONG]))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


async def test_an_output_that_only_the_canary_makes_goes_there_at_once() -> None:
    response = await asked(split([ANSWER]), max_tokens=800)
    assert response.headers["x-model-version"] == "gen@2.0.0"


@pytest.mark.parametrize("tokens", [1025, 5000])
async def test_an_output_above_the_routes_limit_is_nobodys(tokens: int) -> None:
    assert (await asked(split(), max_tokens=tokens)).status_code == 400


async def test_a_canary_that_was_rolled_back_helps_nobody() -> None:
    assert (await asked(split([TOO_LONG], percent=0.0))).status_code == 400
    assert (await asked(split(percent=0.0), max_tokens=800)).status_code == 400


async def test_a_request_whose_replica_died_is_not_sent_a_third_time() -> None:
    response = await asked(split([ReplicaDied("it died", replica="a-1")], [TOO_LONG], [ANSWER]))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


def outcomes(ingress: InMemoryIngress) -> list[tuple[str, str, bool, bool]]:
    for record in ingress.records:  # as deployments/ingress.py does
        ingress.pipeline.outcomes.add(record)
    batches = ingress.pipeline.outcomes.batches(ingress.pipeline.now() + 60)
    return [
        (one.arm, one.code, one.refused, one.failed) for batch in batches for one in batch.outcomes
    ]


async def test_a_turned_request_counts_as_refused_on_the_arm_that_was_drawn_alone() -> None:
    ingress = split([TOO_LONG], [ANSWER])
    assert (await asked(ingress)).status_code == 200
    assert outcomes(ingress) == [("stable", "invalid_request", True, False)]


async def test_refused_by_both_counts_once() -> None:
    ingress = split([TOO_LONG], [TOO_LONG])
    await asked(ingress)
    assert outcomes(ingress) == [("stable", "invalid_request", True, False)]


@pytest.mark.parametrize("percent", [1.0, 100.0])
async def test_a_400_of_the_replica_is_a_refusal_of_its_arm(percent: float) -> None:
    ingress = split([Failure("invalid_request", "no such schema")], percent=percent)
    assert (await asked(ingress)).status_code == 400
    arm, version = ("stable", "gen@1.0.0") if percent == 1.0 else ("canary", "gen@2.0.0")
    assert outcomes(ingress) == [(arm, "invalid_request", True, False)]
    assert ingress.records[0].refused_by == version


@pytest.mark.parametrize("body", [{"max_tokens": 5000}, {"max_tokens": "many"}, {"priority": 1}])
async def test_what_the_ingress_refuses_is_no_outcome(body: dict[str, Any]) -> None:
    ingress = split(percent=100.0)
    assert (await asked(ingress, **body)).status_code == 400
    assert outcomes(ingress) == []
    assert ingress.records[0].refused_by == ""


async def test_the_arm_that_answers_in_place_of_another_makes_no_more_than_it_can() -> None:
    """v2 takes a longer prompt, and here makes less than v1, for which the cap was checked."""
    ingress = split([TOO_LONG], [ANSWER])
    ingress.fleet.update([of("gen@1.0.0", 2048, 512), of("gen@2.0.0", 8192, 256)])
    response = await asked(ingress, max_tokens=400)
    assert response.headers["x-model-version"] == "gen@2.0.0"
    assert response.headers["x-degraded"] == "max_output_tokens=256"
    bodies = [json.loads(call.envelope.body) for call in ingress.transport.calls]
    assert [body["max_completion_tokens"] for body in bodies] == [400, 256]
