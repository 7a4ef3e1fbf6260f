"""Pinned conversations, over HTTP and by handle."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from modelyard.config.table import Table, parse_table
from modelyard.contract.envelope import Item, Usage
from modelyard.contract.reply import Reply
from modelyard.control.published import Published
from modelyard.ingress.by_handle import ByHandle
from modelyard.testing.in_memory import (
    ALPHA_KEY,
    InMemoryIngress,
    bearer,
    post,
    table_record,
)
from modelyard.testing.scripted_transport import Step

USER = {"role": "user", "content": "hi"}
NEXT = [USER, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "more"}]
UNARY = Item(b"{}", 0, Usage(1, 1))
PIN, IGNORED = "x-conversation-pin", "x-conversation-pin-ignored"
ALL = Published(1, 1, (("r-1", 100.0),))
NOBODY = Published(1, 2, (("r-1", 0.5),))
ROLLED_BACK = Published(1, 3, (("r-1", 0.0),), finished=frozenset({"r-1"}))


def table_of(**plan: Any) -> Table:
    plan = {"id": "r-1", "conversations": "pin", "labels": ["retrieval"]} | plan
    chat = {"stable": "gen@1.0.0", "canary": "gen@2.0.0", "rollout": plan}
    return parse_table(table_record(routes=table_record()["routes"] | {"chat": chat}))


def ingress_of(word: Published | None = ALL, table: Table | None = None) -> InMemoryIngress:
    scripts: list[list[Step]] = [[UNARY]] * 5
    ingress = InMemoryIngress(*scripts, table=table or table_of())
    ingress.fleet.update([post("gen@1.0.0"), post("gen@2.0.0")])
    ingress.pipeline.obey(word)
    return ingress


async def asked(
    ingress: InMemoryIngress, messages: list[dict[str, str]], **headers: str
) -> httpx.Headers:
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await http.post(
            "/v1/chat/completions",
            json={"model": "chat", "messages": messages},
            headers=bearer(ALPHA_KEY) | named,
        )
    assert response.status_code == 200
    return response.headers


async def test_a_conversation_stays_with_its_version_whatever_the_weight_until_a_rollback() -> None:
    ingress = ingress_of()
    first = await asked(ingress, [USER])
    assert first["x-model-version"] == "gen@2.0.0"
    ingress.pipeline.obey(NOBODY)
    second = await asked(ingress, NEXT, x_conversation_pin=first[PIN])
    assert (second["x-model-version"], IGNORED in second) == ("gen@2.0.0", False)
    ingress.pipeline.obey(ROLLED_BACK)
    third = await asked(ingress, NEXT, x_conversation_pin=second[PIN])
    assert (third["x-model-version"], third[IGNORED]) == ("gen@1.0.0", "rolled_back")
    fourth = await asked(ingress, NEXT, x_conversation_pin=third[PIN])
    assert (fourth["x-model-version"], IGNORED in fourth) == ("gen@1.0.0", False)


async def test_a_conversation_that_goes_on_without_a_pin_is_stable_from_then_on() -> None:
    ingress = ingress_of()
    answered = await asked(ingress, NEXT)
    assert answered["x-model-version"] == "gen@1.0.0"
    again = await asked(ingress, NEXT, x_conversation_pin=answered[PIN])
    assert again["x-model-version"] == "gen@1.0.0"
    assert [one.arm_reason for one in ingress.records] == ["no_pin", "pin"]
    assert [one.rollout for one in ingress.records] == ["", ""]  # it was drawn for the canary


async def test_a_pin_of_another_conversation_is_invalid() -> None:
    ingress = ingress_of()
    pin = (await asked(ingress, [USER], x_conversation_id="one"))[PIN]
    other = await asked(ingress, NEXT, x_conversation_id="two", x_conversation_pin=pin)
    assert (other["x-model-version"], other[IGNORED]) == ("gen@1.0.0", "invalid")


@pytest.mark.parametrize("pin", ["", "nonsense", "A" * 2000])
async def test_nonsense_is_invalid_and_refuses_nothing(pin: str) -> None:
    answered = await asked(ingress_of(), [USER], x_conversation_pin=pin)
    assert (answered["x-model-version"], answered[IGNORED]) == ("gen@2.0.0", "invalid")


async def test_an_ingress_without_board_or_control_uses_stable() -> None:
    pin = (await asked(ingress_of(), [USER]))[PIN]
    answered = await asked(ingress_of(None), NEXT, x_conversation_pin=pin)
    assert (answered["x-model-version"], answered[IGNORED]) == ("gen@1.0.0", "unknown_version")


async def test_a_version_that_only_stands_in_gives_no_pin() -> None:
    ingress = ingress_of()
    ingress.fleet.update([post("gen@1.0.0")])
    answered = await asked(ingress, [USER])
    assert (answered["x-model-version"], PIN in answered) == ("gen@1.0.0", False)


async def test_a_plan_that_lets_conversations_turn_gives_and_follows_no_pin() -> None:
    pin = (await asked(ingress_of(), [USER]))[PIN]
    ingress = ingress_of(NOBODY, table_of(conversations="turn"))
    answered = await asked(ingress, NEXT, x_conversation_pin=pin)
    assert (answered["x-model-version"], PIN in answered) == ("gen@1.0.0", False)


async def test_a_stream_carries_the_pin_in_its_headers() -> None:
    ingress = ingress_of()
    transport = httpx.ASGITransport(ingress.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        body = {"model": "chat", "messages": [USER], "stream": True}
        answered = await http.post("/v1/chat/completions", json=body, headers=bearer(ALPHA_KEY))
    followed = await asked(ingress, NEXT, x_conversation_pin=answered.headers[PIN])
    assert followed["x-model-version"] == "gen@2.0.0"


async def test_by_handle_the_pin_is_a_field_of_the_reply() -> None:
    ingress = ingress_of()
    by_handle = ByHandle(ingress.pipeline)

    async def reply(messages: list[dict[str, str]], headers: dict[str, str]) -> Reply:
        body = json.dumps({"model": "chat", "messages": messages}).encode()
        answer = await by_handle.ask(ALPHA_KEY, "chat", body, headers)
        assert isinstance(answer, Reply)
        return answer

    first = await reply([USER], {})
    ingress.pipeline.obey(NOBODY)
    second = await reply(NEXT, {"X-Conversation-Pin": first.pin})
    assert (second.model_version, second.pin_ignored) == ("gen@2.0.0", "")
    third = await reply(NEXT, {"X-Conversation-Pin": "nonsense"})
    assert (third.model_version, third.pin_ignored) == ("gen@1.0.0", "invalid")


@pytest.mark.parametrize(
    ("given", "label"), [("retrieval", "retrieval"), ("billing", ""), ("", ""), ("x" * 500, "")]
)
async def test_only_a_label_that_the_plan_declares_is_kept(given: str, label: str) -> None:
    ingress = ingress_of()
    await asked(ingress, [USER], x_traffic_label=given)
    assert ingress.records[-1].label == label


async def test_what_the_draw_sent_to_an_arm_becomes_its_outcome() -> None:
    ingress = ingress_of()
    await asked(ingress, [USER], x_traffic_label="retrieval")
    await asked(ingress, NEXT)
    for record in ingress.records:
        ingress.pipeline.outcomes.add(record)
    (batch,) = ingress.pipeline.outcomes.batches(ingress.pipeline.now() + 60)
    (one,) = batch.outcomes
    assert (one.arm, one.tier, one.label, one.code) == ("canary", "paid", "retrieval", "ok")
    assert one.conversation == ingress.records[0].conversation[:12]
