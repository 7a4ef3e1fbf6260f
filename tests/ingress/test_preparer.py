"""What a caller who may ask is told of where a request went."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx

from modelyard.config.table import parse_table
from modelyard.contract.envelope import Failure, Item, Usage
from modelyard.control.published import Published
from modelyard.testing.in_memory import EVALUATOR_KEY, InMemoryIngress, bearer, post, table_record

TOO_LONG = Failure("invalid_request", "the prompt is too long", wire_code="context_length_exceeded")
ANSWER = Item(b"{}", 0, Usage(1, 1))


async def test_the_debug_header_says_that_the_other_arm_answered() -> None:
    chat = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": {"id": "r-1"}}
    tenants = {"alpha": {"models": ["*"]}, "beta": {"models": ["*"]}}
    table = parse_table(table_record(routes={"chat": chat}, tenants=tenants))
    ingress = InMemoryIngress([TOO_LONG], [ANSWER], table=table)
    larger = post("gen@2.0.0")
    assert larger.report.description is not None
    description = replace(larger.report.description, max_context_tokens=8192)
    larger = replace(larger, report=replace(larger.report, description=description))
    ingress.fleet.update([post("gen@1.0.0"), larger])
    ingress.pipeline.in_force.take(Published(1, 1, (("r-1", 1.0),)))
    headers = bearer(EVALUATOR_KEY) | {"X-Conversation-Id": "c-1", "X-Modelyard-Debug": "1"}
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        body = {"model": "chat", "messages": [{"role": "user", "content": "hi"}]}
        answer = await http.post("/v1/chat/completions", json=body, headers=headers)
    assert answer.headers["x-model-version"] == "gen@2.0.0"
    told = json.loads(answer.headers["x-modelyard-route"])
    assert told["turned"]["version"] == "gen@2.0.0"
    assert told["cell"]["cell"] == "gen@2.0.0"
