"""A client that drives an ASGI app in this process and sees a stream as the wire would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from starlette.types import ASGIApp, Message


@dataclass(slots=True)
class Exchange:
    """One request and what has come back so far; `chunks` are the body messages that hold bytes.

    chunk_times_s: the loop's clock at each chunk. ended: the app closed the body. broken: what the
    app raised, upon which a server logs it and drops the connection. violations: messages that came
    out of order, kept because the app may hide the RuntimeError that each was answered with.
    """

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    chunks: list[bytes] = field(default_factory=list)
    chunk_times_s: list[float] = field(default_factory=list)
    started_s: float | None = None
    ended: bool = False
    violations: list[str] = field(default_factory=list)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    @property
    def broken(self) -> BaseException | None:
        if self.task is None or not self.task.done() or self.task.cancelled():
            return None
        return self.task.exception()

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    def json(self) -> Any:
        return json.loads(self.body)

    async def finished(self) -> Exchange:
        """Wait until the app returned or raised."""
        if self.task is not None:
            await asyncio.wait({self.task})
        return self

    async def hang_up(self) -> Exchange:
        """Leave, as uvicorn reports it: `receive` gives http.disconnect."""
        self.gone.set()
        return await self.finished()

    async def cancel(self) -> Exchange:
        """Leave, as Ray Serve reports it: the app's task is cancelled."""
        if self.task is not None:
            self.task.cancel()
        return await self.finished()

    def take(self, message: Message) -> None:
        """Raises RuntimeError for an order of messages that a server would refuse."""
        clock_s = asyncio.get_running_loop().time()
        if message["type"] == "http.response.start":
            if self.status is not None:
                self._refuse("the response was started twice")
            self.status, self.started_s = message["status"], clock_s
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        if self.status is None or self.ended:
            self._refuse("a body message outside a response")
        if message.get("body"):
            self.chunks.append(message["body"])
            self.chunk_times_s.append(clock_s)
        self.ended = not message.get("more_body", False)

    def _refuse(self, violation: str) -> NoReturn:
        self.violations.append(violation)
        raise RuntimeError(violation)


def start(
    app: ASGIApp,
    method: str,
    path: str,
    *,
    body: Any = None,
    headers: Mapping[str, str] | None = None,
    send_s: float = 0.0,
) -> Exchange:
    """Begin a request and return at once. `body`: bytes, data to be sent as JSON, or an iterator of
    chunks, which go without a length as the app asks for them.

    send_s: how long the client takes for each message, as one with a slow line would.
    """
    sent = {"content-type": "application/json"}
    if isinstance(body, AsyncIterator):
        chunks = body
    else:
        raw = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        chunks = _once(raw)
        sent["content-length"] = str(len(raw))
    sent |= dict(headers or {})
    route, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": route,
        "raw_path": route.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "scheme": "http",
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    exchange = Exchange()
    exchange.task = asyncio.create_task(_drive(app, scope, chunks, exchange, send_s))
    return exchange


async def _once(raw: bytes) -> AsyncIterator[bytes]:
    yield raw


async def _drive(
    app: ASGIApp,
    scope: dict[str, Any],
    chunks: AsyncIterator[bytes],
    exchange: Exchange,
    send_s: float,
) -> None:
    whole = False

    async def receive() -> Message:
        nonlocal whole
        if not whole:
            chunk = await anext(chunks, None)
            whole = chunk is None
            return {"type": "http.request", "body": chunk or b"", "more_body": not whole}
        await exchange.gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if send_s:
            await asyncio.sleep(send_s)
        exchange.take(message)

    await app(scope, receive, send)
