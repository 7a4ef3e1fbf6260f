"""A server on loopback that answers as it is told."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Loopback:
    """url: where it is. seen: (path, body, headers) of what came. answer: what it does next."""

    url: str = ""
    seen: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)
    answer: Handler | None = None
    connections: set[Any] = field(default_factory=set)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.seen.append((request.path, await request.json(), dict(request.headers)))
        assert request.transport is not None
        self.connections.add(request.transport.get_extra_info("peername"))
        assert self.answer is not None
        return await self.answer(request)

    def says(self, record: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.json_response(record, status=status, headers=headers)

        self.answer = answer

    def streams(self, *chunks: bytes, broken: bool = False) -> None:
        """Chunks as they are, each in a packet of its own if the network lets it."""

        async def answer(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for chunk in chunks:
                await response.write(chunk)
                await asyncio.sleep(0)
            if broken:
                assert request.transport is not None
                request.transport.abort()
            return response

        self.answer = answer


@pytest.fixture
async def loopback() -> AsyncIterator[Loopback]:
    server = Loopback()
    app = web.Application()
    app.router.add_post("/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()
