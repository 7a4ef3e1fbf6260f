"""The HTTP hook, over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from aiohttp import web

from modelyard.ingress.judge_hook import MAX_REPLY_BYTES, JudgeHook
from modelyard.ingress.judge_question import NoVerdict, Question

QUESTION = Question(({"role": "user", "content": "hé?"},), "yes", "be polite")


class Service:
    """Somebody's judge: says what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.reply: Any = {"good": True}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.asked: list[dict[str, Any]] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.asked.append(await request.json())
        body = self.reply if isinstance(self.reply, bytes) else json.dumps(self.reply).encode()
        return web.Response(body=body, status=self.status, headers=self.headers)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made, app = Service(), web.Application()
    app.router.add_post("/judge", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    made.url = f"http://{host}:{port}/judge"
    yield made
    await runner.cleanup()


@pytest.fixture
async def hook() -> AsyncIterator[JudgeHook]:
    made = JudgeHook()
    yield made
    await made.aclose()


async def test_it_is_sent_the_conversation_the_answer_and_the_rubric_alone(
    service: Service, hook: JudgeHook
) -> None:
    assert await hook.is_good(service.url, QUESTION) is True
    assert service.asked == [
        {
            "messages": [{"role": "user", "content": "hé?"}],
            "answer": "yes",
            "rubric": "be polite",
        }
    ]


@pytest.mark.parametrize(
    ("reply", "good"),
    [
        ({"good": True}, True),
        ({"good": False, "why": "rude"}, False),
        ({"score": 1}, True),
        ({"score": 0.5}, True),
        ({"score": 0.49}, False),
        ({"score": 0}, False),
    ],
)
async def test_a_verdict_is_a_word_or_a_score(
    service: Service, hook: JudgeHook, reply: Any, good: bool
) -> None:
    service.reply = reply
    assert await hook.is_good(service.url, QUESTION) is good


@pytest.mark.parametrize(
    "reply",
    [
        {},
        [],
        {"good": "yes"},
        {"good": 1},
        {"good": None},
        {"score": True},
        {"score": "0.9"},
        {"score": 1.1},
        {"score": -0.1},
        {"good": True, "score": 1},
        b'{"score": NaN}',
        b"good",
        b"",
        b" " * (MAX_REPLY_BYTES + 1),
    ],
)
async def test_anything_else_is_no_verdict(service: Service, hook: JudgeHook, reply: Any) -> None:
    service.reply = reply
    with pytest.raises(NoVerdict):
        await hook.is_good(service.url, QUESTION)


@pytest.mark.parametrize("status", [302, 307, 404, 500])
async def test_no_status_but_200_is_a_verdict_and_no_redirect_is_followed(
    service: Service, hook: JudgeHook, status: int
) -> None:
    service.status, service.headers = status, {"Location": service.url}
    with pytest.raises(NoVerdict, match=str(status)):
        await hook.is_good(service.url, QUESTION)
    assert len(service.asked) == 1


async def test_a_hook_that_is_away_is_no_verdict(hook: JudgeHook) -> None:
    with pytest.raises(NoVerdict, match="ConnectError"):
        await hook.is_good("http://127.0.0.1:9/judge", QUESTION)


async def test_two_workers_that_ask_at_once_share_one_client(
    service: Service, hook: JudgeHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[httpx.AsyncClient] = []
    real = httpx.AsyncClient

    def counted(**options: Any) -> httpx.AsyncClient:
        made.append(real(**options))
        return made[-1]

    monkeypatch.setattr(httpx, "AsyncClient", counted)
    asked = (hook.is_good(service.url, QUESTION) for _ in range(2))
    assert await asyncio.gather(*asked) == [True, True]
    assert len(made) == 1
    await hook.aclose()
    assert made[0].is_closed


async def test_a_proxy_of_the_environment_gets_nothing(
    service: Service, hook: JudgeHook, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert await hook.is_good(service.url, QUESTION) is True
