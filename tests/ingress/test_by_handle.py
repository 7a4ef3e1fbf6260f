"""The ingress by handle: what the client of this release would never send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelyard.contract.envelope import Failure, Item
from modelyard.contract.operations import Operation
from modelyard.contract.reply import Reply
from modelyard.ingress.by_handle import ByHandle
from modelyard.testing.in_memory import ALPHA_KEY, OPS_KEY, InMemoryIngress
from modelyard.testing.scripted_transport import End

BodyFor = Callable[..., dict[str, Any]]


def code_of(answer: Reply | Failure | bytes) -> tuple[str, str | None]:
    assert isinstance(answer, Failure)
    return answer.code, answer.reason


@pytest.mark.parametrize(
    ("key", "operation", "body", "code"),
    [
        (OPS_KEY, "classify", b"{}", "forbidden"),
        (ALPHA_KEY, "reconfigure", b"{}", "not_found"),
        (ALPHA_KEY, "classify", b"[1]", "invalid_request"),
        (ALPHA_KEY, "classify", b"\xff", "invalid_request"),
        (ALPHA_KEY, "classify", b'{"model": "intent", "input": 1}', "invalid_request"),
    ],
)
async def test_a_strays_request_is_refused(
    key: str, operation: str, body: bytes, code: str
) -> None:
    answer = await ByHandle(InMemoryIngress().pipeline).ask(key, operation, body, {})
    assert code_of(answer)[0] == code


async def test_the_key_is_checked_before_the_body_is_read() -> None:
    ingress = InMemoryIngress()
    answer = await ByHandle(ingress.pipeline).ask("none", "classify", b"\xff" * 10**8, {})
    assert code_of(answer)[0] == "unauthenticated"


async def test_a_stream_is_asked_for_by_its_own_method(body_for: BodyFor) -> None:
    by_handle = ByHandle(InMemoryIngress().pipeline)
    body = json.dumps(body_for(Operation.CHAT, stream=True)).encode()
    assert code_of(await by_handle.ask(ALPHA_KEY, "chat", body, {}))[0] == "invalid_request"
    body = json.dumps(body_for(Operation.CHAT)).encode()
    [answer] = [item async for item in by_handle.ask_stream(ALPHA_KEY, "chat", body, {})]
    assert code_of(answer)[0] == "invalid_request"


async def test_a_bug_is_logged_and_leaks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    ingress = InMemoryIngress()
    no_body: Any = None
    answer = await ByHandle(ingress.pipeline).ask(ALPHA_KEY, "classify", no_body, {})
    assert code_of(answer)[0] == "internal"
    assert isinstance(answer, Failure)
    assert "NoneType" not in answer.message
    assert "NoneType" in caplog.text
    assert ingress.records[0].status == 500


async def test_a_stream_is_bytes_and_one_reply(body_for: BodyFor, first: Item, last: Item) -> None:
    ingress = InMemoryIngress([first, Item(b"", 1), last])
    body = json.dumps(body_for(Operation.CHAT, stream=True)).encode()
    answers = ByHandle(ingress.pipeline).ask_stream(ALPHA_KEY, "chat", body, {})
    items = [item async for item in answers]
    assert items[:-1] == [first.data]  # an item without bytes only counts tokens
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert (reply.data, reply.usage) == (last.data, last.final)
    assert ingress.records[0].code == "ok"


async def test_a_stream_that_is_closed_stops_the_replica(
    body_for: BodyFor, first: Item, last: Item
) -> None:
    ingress = InMemoryIngress([first, first, last])
    body = json.dumps(body_for(Operation.CHAT, stream=True)).encode()
    answers = ByHandle(ingress.pipeline).ask_stream(ALPHA_KEY, "chat", body, {})
    await anext(answers)
    await answers.aclose()
    assert ingress.transport.calls[0].end is End.CLOSED
    assert ingress.records[0].code == "cancelled"
