import asyncio
import json
import socket
import time
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from modelyard.bench.http_sender import HttpSender
from modelyard.bench.outcome import Outcome, Verdict
from modelyard.workload.mix import Stream
from modelyard.workload.plan import Planned

CHAT = b'data: {"choices": [{"delta": {"content": "hi"}}]}\n\n'
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 6}}\n\n'
DONE = b"data: [DONE]\n\n"


async def ask(loopback: Any, count: int = 1, **options: Any) -> list[Outcome]:
    """Send so many requests at once."""
    url = options.pop("url", loopback.url)
    keys = options.pop("keys", {})
    settings: dict[str, Any] = {"timeout_s": options.pop("timeout_s", 20.0)}
    settings["connections"] = options.pop("connections", None)
    stream = Stream.model_validate({"name": "a", "route": "chat", "model": "m"} | options)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        sender = HttpSender(session, url, keys, seed=1, now=time.monotonic, **settings)
        requests = [sender.send(Planned(number, 0.0, stream, 8, 4)) for number in range(count)]
        return list(await asyncio.gather(*requests))


async def test_a_stream_is_complete_with_its_terminal_event(loopback: Any) -> None:
    loopback.streams(b": keep-alive\n", CHAT, CHAT, CHAT, USAGE, DONE)
    (outcome,) = await ask(loopback)
    assert outcome.verdict is Verdict.COMPLETED
    assert outcome.first is not None
    assert outcome.started <= outcome.first <= outcome.ended
    assert len(outcome.gaps_s) == 2
    assert (outcome.input_tokens, outcome.output_tokens) == (4, 6)
    assert outcome.tokens_counted


async def test_pieces_without_a_usage_are_no_count_of_tokens(loopback: Any) -> None:
    loopback.streams(CHAT, DONE)
    (outcome,) = await ask(loopback)
    assert (outcome.output_tokens, outcome.tokens_counted) == (1, False)


async def test_a_stream_in_odd_pieces_is_the_same(loopback: Any) -> None:
    whole = CHAT + CHAT.replace(b"\n", b"\r\n") + USAGE + DONE
    loopback.streams(*(whole[at : at + 7] for at in range(0, len(whole), 7)))
    (outcome,) = await ask(loopback)
    assert (outcome.verdict, outcome.output_tokens) == (Verdict.COMPLETED, 6)
    assert len(outcome.gaps_s) == 1


async def test_a_stream_that_just_stops_is_no_success(loopback: Any) -> None:
    loopback.streams(CHAT, CHAT, USAGE)
    (outcome,) = await ask(loopback)
    assert (outcome.verdict, outcome.code) == (Verdict.FAILED, "broken_stream")
    assert outcome.reason == "no terminal event"


async def test_a_connection_that_breaks_in_a_stream_is_counted(loopback: Any) -> None:
    loopback.streams(CHAT, CHAT, broken=True)
    (outcome,) = await ask(loopback)
    assert (outcome.verdict, outcome.code) == (Verdict.FAILED, "broken_stream")


async def test_an_error_event_ends_a_stream_as_what_it_says(loopback: Any) -> None:
    error = b'data: {"error": {"code": "replica_failed", "reason": "replica_died"}}\n\n'
    loopback.streams(CHAT, error, DONE)
    (outcome,) = await ask(loopback)
    assert (outcome.verdict, outcome.code) == (Verdict.FAILED, "replica_failed")
    assert outcome.reason == "replica_died"


async def test_an_overload_said_before_any_content_is_a_rejection(loopback: Any) -> None:
    error = b'event: error\ndata: {"code": "overloaded", "message": "full"}\n\n'
    loopback.streams(error)
    (outcome,) = await ask(loopback, route="generate")
    assert (outcome.verdict, outcome.code) == (Verdict.REJECTED, "overloaded")


async def test_a_rejection_keeps_its_reason_and_when_to_return(loopback: Any) -> None:
    error = {"error": {"code": "overloaded", "reason": "queue_full"}}
    loopback.says(error, 503, {"Retry-After": "7", "retry-after-ms": "6500"})
    (outcome,) = await ask(loopback)
    assert (outcome.verdict, outcome.code) == (Verdict.REJECTED, "503")
    assert outcome.reason == "queue_full"
    assert outcome.retry_after_s == 6.5
    assert outcome.retryable


async def test_what_the_server_said_is_kept_short_plain_and_without_the_key(loopback: Any) -> None:
    keys = {"": "sk-my-secret-key"}
    loopback.says(
        {"error": {"code": "x", "message": "bad key\nsk-my-secret-key \x1b[31m" + "y" * 999}}, 401
    )
    (outcome,) = await ask(loopback, keys=keys)
    assert outcome.message.startswith("bad key *** [31myy")
    assert len(outcome.message) == 200
    loopback.streams(b'event: error\ndata: {"code": "internal", "message": "it broke"}\n\n')
    (outcome,) = await ask(loopback, route="generate")
    assert (outcome.verdict, outcome.message) == (Verdict.FAILED, "it broke")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("slow down", "slow down"),
        ("<html><body>no", ""),
        ('{"detail": "Not Found"}', "Not Found"),
        ('{"error": "no model"}', "no model"),
        ('{"detail": [{"loc": 1}]}', '[{"loc": 1}]'),
        ("[1]", ""),
    ],
)
async def test_each_kind_of_error_body_has_its_sentence(
    loopback: Any, body: str, said: str
) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=500, text=body)

    loopback.answer = answer
    (outcome,) = await ask(loopback)
    assert outcome.message == said


async def test_a_peer_that_says_no_more_than_a_status_is_understood(loopback: Any) -> None:
    async def plain(request: web.Request) -> web.Response:
        return web.Response(status=429, text="slow down", headers={"Retry-After": "2"})

    loopback.answer = plain
    (outcome,) = await ask(loopback)
    assert (outcome.verdict, outcome.code, outcome.reason) == (Verdict.REJECTED, "429", "")
    assert (outcome.retryable, outcome.retry_after_s) == (True, 2.0)


@pytest.mark.parametrize(
    ("status", "said", "retryable"), [(500, "true", True), (503, "false", False)]
)
async def test_the_server_decides_what_may_be_sent_again(
    loopback: Any, status: int, said: str, retryable: bool
) -> None:
    loopback.says({"code": "internal"}, status, {"x-should-retry": said, "Retry-After": "soon"})
    (outcome,) = await ask(loopback)
    assert (outcome.retryable, outcome.retry_after_s) == (retryable, None)


async def test_a_unary_answer_has_its_end_and_its_usage(loopback: Any) -> None:
    loopback.says({"usage": {"prompt_tokens": 9, "completion_tokens": 2}})
    (outcome,) = await ask(loopback, stream=False)
    assert (outcome.verdict, outcome.first) == (Verdict.COMPLETED, None)
    assert (outcome.input_tokens, outcome.output_tokens) == (9, 2)


@pytest.mark.parametrize("route", ["embeddings", "rerank", "classify", "score"])
async def test_small_models_are_asked_at_their_routes(loopback: Any, route: str) -> None:
    loopback.says({"data": []})
    (outcome,) = await ask(loopback, route=route)
    assert outcome.verdict is Verdict.COMPLETED
    ((path, body, _),) = loopback.seen
    assert path.endswith(route)
    assert body["model"] == "m"


@pytest.mark.parametrize(
    "chunks", [(b"data: {\n\n",), (b"data: [1]\n\n",), (b'data: {"choices": 5}\n\n',)]
)
async def test_nonsense_of_a_peer_is_counted_and_ends_nothing(
    loopback: Any, chunks: tuple[bytes, ...]
) -> None:
    loopback.streams(*chunks)
    (outcome,) = await ask(loopback)
    assert outcome.verdict is Verdict.FAILED
    assert outcome.code in ("bad_answer", "broken_stream")


async def test_an_answer_that_is_no_json_is_counted(loopback: Any) -> None:
    async def page(request: web.Request) -> web.Response:
        return web.Response(text="<html>")

    loopback.answer = page
    (outcome,) = await ask(loopback, stream=False)
    assert (outcome.verdict, outcome.code) == (Verdict.FAILED, "bad_answer")


async def test_a_server_that_is_not_there_is_counted(loopback: Any) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        (outcome,) = await ask(loopback, url=f"http://127.0.0.1:{unused.getsockname()[1]}")
    assert (outcome.verdict, outcome.code, outcome.retryable) == (Verdict.FAILED, "connect", True)


async def test_an_attempt_has_its_time(loopback: Any) -> None:
    async def never(request: web.Request) -> web.Response:
        await asyncio.sleep(30)
        raise AssertionError

    loopback.answer = never
    (outcome,) = await ask(loopback, timeout_s=0.05)
    assert (outcome.verdict, outcome.code) == (Verdict.FAILED, "timeout")


async def test_each_tenant_sends_its_key_and_a_deadline_where_the_route_wants_it(
    loopback: Any,
) -> None:
    loopback.says({})
    keys = {"": "plain", "t": "theirs"}
    await ask(loopback, keys=keys, tenant="t", deadline_ms=900)
    await ask(loopback, keys=keys, deadline_ms=900, route="generate", stream=False)
    (_, _, chat), (_, generate, other) = loopback.seen
    assert chat["Authorization"] == "Bearer theirs"
    assert chat["X-Deadline-Ms"] == "900"
    assert other["Authorization"] == "Bearer plain"
    assert generate["deadline_ms"] == 900
    assert "X-Deadline-Ms" not in other


async def test_a_limit_of_connections_is_kept_and_the_wait_told(loopback: Any) -> None:
    gate = asyncio.Event()

    async def held(request: web.Request) -> web.Response:
        if len(loopback.seen) == 2:
            gate.set()
        await gate.wait()
        return web.json_response({})

    loopback.answer = held
    outcomes = await ask(loopback, 6, connections=2, stream=False)
    assert len(loopback.connections) == 2
    assert sum(outcome.connection_wait_s > 0.0001 for outcome in outcomes) >= 4


async def test_connections_are_used_again_after_a_stream(loopback: Any) -> None:
    loopback.streams(CHAT, DONE)
    await ask(loopback, 5, connections=1)
    assert len(loopback.seen) == 5
    assert len(loopback.connections) == 1
    assert json.dumps(loopback.seen[0][1]) != json.dumps(loopback.seen[1][1])
