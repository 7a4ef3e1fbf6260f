"""What the `openai` client makes of our errors: class, fields, and whether it tries again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from modelyard.contract.envelope import Item, Usage
from modelyard.contract.errors import (
    DeadlineExceeded,
    Internal,
    InvalidRequest,
    Overloaded,
    RateLimited,
    ReplicaFailed,
    RequestError,
)
from modelyard.testing.in_memory import ALPHA_KEY, BETA_KEY, OPS_KEY, InMemoryIngress
from modelyard.testing.virtual_time import run_virtual

MESSAGES: Any = [{"role": "user", "content": "hello"}]
CHUNK = b'data: {"id": "1", "object": "chat.completion.chunk", "choices": []}\n\n'
EVENT = b'event: response.created\ndata: {"type": "response.created", "response": {}}\n\n'


def client_of(
    ingress: InMemoryIngress, key: str = ALPHA_KEY, max_retries: int = 2
) -> openai.AsyncOpenAI:
    # Without raising: a server drops the connection where the app raises, as a stream's end does.
    transport = httpx2.ASGITransport(ingress.app, raise_app_exceptions=False)
    return openai.AsyncOpenAI(
        base_url="http://modelyard/v1",
        api_key=key,
        max_retries=max_retries,
        http_client=httpx2.AsyncClient(transport=transport),
    )


async def chat(client: openai.AsyncOpenAI, **options: Any) -> Any:
    asked = {"model": "chat", "messages": MESSAGES} | options
    return await client.chat.completions.create(**asked)


def error_of(ingress_at: Callable[..., InMemoryIngress], *scripts: Any, **options: Any) -> Any:
    """The error that the client raises, and how often it asked the replica."""

    async def main() -> tuple[openai.APIError, int]:
        ingress = ingress_at(*scripts)
        client = client_of(ingress, options.pop("key", ALPHA_KEY))
        with pytest.raises(openai.APIError) as caught:
            await chat(client, **options)
        return caught.value, len(ingress.transport.calls)

    return run_virtual(main())


@pytest.mark.parametrize(
    ("options", "status", "kind", "code", "param", "error"),
    [
        ({"n": 0}, 400, "invalid_request_error", None, "n", openai.BadRequestError),
        (
            {"key": "my_no_key"},
            401,
            "authentication_error",
            "invalid_api_key",
            None,
            openai.AuthenticationError,
        ),
        ({"key": BETA_KEY}, 403, "permission_error", None, None, openai.PermissionDeniedError),
        ({"key": OPS_KEY}, 403, "permission_error", None, None, openai.PermissionDeniedError),
        (
            {"model": "nobody"},
            404,
            "invalid_request_error",
            "model_not_found",
            "model",
            openai.NotFoundError,
        ),
    ],
)
def test_a_refused_request_is_the_clients_own_error_and_is_asked_once(
    ingress_at: Any,
    options: dict[str, Any],
    status: int,
    kind: str,
    code: str | None,
    param: str | None,
    error: type[openai.APIStatusError],
) -> None:
    caught, calls = error_of(ingress_at, **options)
    assert type(caught) is error
    assert (caught.status_code, caught.type) == (status, kind)
    if code is not None:
        assert caught.code == code
    if param is not None:
        assert caught.param == param
    body: Any = caught.body
    assert caught.request_id == body["request_id"]
    assert calls == 0


@pytest.mark.parametrize(
    ("failure", "error", "code", "calls"),
    [
        (
            InvalidRequest("too long", param="messages", wire_code="context_length_exceeded"),
            openai.BadRequestError,
            "context_length_exceeded",
            1,
        ),
        (RateLimited("slow", retry_after_s=2), openai.RateLimitError, "rate_limit_exceeded", 3),
        (Overloaded("full", retry_after_s=2), openai.InternalServerError, None, 3),
        (DeadlineExceeded("late"), openai.InternalServerError, "deadline_exceeded", 1),
        (
            DeadlineExceeded("late", retryable=True),
            openai.InternalServerError,
            "deadline_exceeded",
            3,
        ),
        (ReplicaFailed("x", retryable=False), openai.InternalServerError, "replica_failed", 1),
        (Internal("a bug"), openai.InternalServerError, "internal", 1),
    ],
)
def test_the_client_tries_again_exactly_when_we_say_so(
    ingress_at: Any,
    failure: RequestError,
    error: type[openai.APIStatusError],
    code: str | None,
    calls: int,
) -> None:
    script = [failure.failure()]
    caught, asked = error_of(ingress_at, script, script, script)
    assert type(caught) is error
    assert caught.status_code == failure.status
    assert asked == calls
    if code is not None:
        assert caught.code == code


def test_the_client_waits_as_long_as_it_is_told_and_then_is_answered(ingress_at: Any) -> None:
    answer = Item(b'{"id": "1", "choices": []}', 0, Usage(1, 1))

    async def main() -> None:
        full = Overloaded("full", retry_after_s=7.5).failure()
        ingress = ingress_at([full], [full], [answer])
        assert (await chat(client_of(ingress))).id == "1"
        assert asyncio.get_running_loop().time() == pytest.approx(15, abs=0.5)
        assert [record.status for record in ingress.records] == [503, 503, 200]

    run_virtual(main())


async def all_of(stream: Any, seen: list[Any]) -> None:
    async for one in stream:
        seen.append(one)


def test_a_stream_that_fails_raises_in_the_clients_loop(ingress_at: Any) -> None:
    async def main() -> None:
        ingress = ingress_at([Item(CHUNK, 1), ReplicaFailed("it died").failure()])
        stream = await chat(client_of(ingress), stream=True)
        seen: list[Any] = []
        with pytest.raises(openai.APIError) as caught:
            await all_of(stream, seen)
        body: Any = caught.value.body
        assert len(seen) == 1
        assert body["modelyard_code"] == "replica_failed"
        assert body["request_id"] == ingress.records[0].request_id

    run_virtual(main())


def test_a_stream_of_responses_that_fails_raises_in_the_clients_loop(ingress_at: Any) -> None:
    async def main() -> None:
        ingress = ingress_at([Item(EVENT, 1), ReplicaFailed("it died").failure()])
        stream = await client_of(ingress).responses.create(model="chat", input="hi", stream=True)
        seen: list[Any] = []
        with pytest.raises(openai.APIError, match="it died"):
            await all_of(stream, seen)
        assert [event.type for event in seen] == ["response.created"]

    run_virtual(main())


def test_a_stream_of_responses_ends_without_done(ingress_at: Any) -> None:
    async def main() -> None:
        ingress = ingress_at([Item(EVENT, 1), Item(EVENT, 1, Usage(3, 2))])
        client = client_of(ingress)
        answer = await client.responses.with_raw_response.create(
            model="chat", input="hello", stream=True
        )
        assert b"[DONE]" not in await answer.http_response.aread()

    run_virtual(main())
