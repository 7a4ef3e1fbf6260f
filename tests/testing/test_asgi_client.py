from collections.abc import AsyncIterator

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from modelyard.testing.asgi_client import start


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    request = Request(scope, receive)
    length = request.headers.get("content-length")
    body = (await request.body()).decode()
    await JSONResponse({"body": body, "length": length})(scope, receive, send)


async def chunks() -> AsyncIterator[bytes]:
    yield b"ab"
    yield b""
    yield b"c"


@pytest.mark.parametrize(
    ("body", "text", "length"),
    [(b"raw", "raw", "3"), ({"a": 1}, '{"a": 1}', "8"), (None, "", "0"), (chunks(), "abc", None)],
)
async def test_a_body_arrives_whole_and_chunks_have_no_length(
    body: object, text: str, length: str | None
) -> None:
    answer = await start(echo, "POST", "/", body=body).finished()
    assert answer.json() == {"body": text, "length": length}


async def test_the_app_may_leave_chunks_unread() -> None:
    unread = chunks()

    async def hasty(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await JSONResponse("enough", 413)(scope, receive, send)

    assert (await start(hasty, "POST", "/", body=unread).finished()).status == 413
    assert await anext(unread) == b""
