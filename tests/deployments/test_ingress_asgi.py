"""The shim around the ingress app: one X-Request-Id on the wire, whoever adds it."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.one_request_id import one_request_id
from modelyard.contract.headers import REQUEST_ID
from modelyard.testing.asgi_client import start


def app_with(**headers: str) -> ASGIApp:
    """An app that answers `ok` under these headers (`_` for `-`)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return one_request_id(Response("ok", headers=named))


async def headers_of(app: ASGIApp, **sent: str) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in sent.items()}
    exchange = await start(app, "GET", "/", headers=named).finished()
    assert (exchange.status, exchange.body, exchange.broken) == (200, b"ok", None)
    return exchange.headers


async def test_ours_is_dropped_where_serve_will_echo_the_same() -> None:
    headers = await headers_of(app_with(x_request_id="r-1", x_other="kept"), x_request_id="r-1")
    assert REQUEST_ID.lower() not in headers
    assert headers["x-other"] == "kept"


async def test_ours_stays_where_it_differs_from_the_callers() -> None:
    headers = await headers_of(app_with(x_request_id="r-2"), x_request_id="not well-formed")
    assert headers[REQUEST_ID.lower()] == "r-2"


async def test_ours_stays_where_the_caller_sent_none() -> None:
    headers = await headers_of(app_with(x_request_id="r-2"))
    assert headers[REQUEST_ID.lower()] == "r-2"


async def test_an_answer_without_an_id_passes_whole() -> None:
    assert REQUEST_ID.lower() not in await headers_of(app_with(), x_request_id="r-1")
    assert REQUEST_ID.lower() not in await headers_of(app_with())


async def test_a_lifespan_reaches_the_app_with_its_own_channels() -> None:
    seen: list[Any] = []

    async def inner(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend([scope, receive, send])

    async def receive() -> Message:
        return {"type": "lifespan.startup"}

    async def send(message: Message) -> None:
        seen.append(message)

    scope = {"type": "lifespan"}
    await one_request_id(inner)(scope, receive, send)
    assert seen == [scope, receive, send]
