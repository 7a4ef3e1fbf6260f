"""What the platform is measured against: the same work with no platform around it.

`app` is a two-hop Serve app (FastAPI ingress, handle, one deployment). `floor` is one uvicorn
process: `python -m tests.benchmarks.bare PORT`.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from typing import Any, Final

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse
from ray import serve
from ray.serve import Application
from ray.serve.handle import DeploymentHandle

from tests.benchmarks.instant import ChatAnswer, chunks_of, script_of

UNARY: Final = "/unary"
STREAM: Final = "/stream"


class Back:
    """The model's place: the same engine that the platform is given, and nothing else."""

    async def call(self, body: bytes) -> bytes:
        script_of(body)
        return ChatAnswer().model_dump_json().encode()

    async def stream(self, body: bytes) -> AsyncGenerator[bytes]:
        async for chunk in chunks_of(script_of(body)):
            yield chunk.encode()


class ByHandle:
    """Back's two methods over a Serve handle."""

    def __init__(self, back: DeploymentHandle[Any]) -> None:
        self._call = back.options(method_name="call")
        self._stream = back.options(method_name="stream", stream=True)

    async def call(self, body: bytes) -> bytes:
        answer: bytes = await self._call.remote(body)
        return answer

    def stream(self, body: bytes) -> Any:
        return self._stream.remote(body)


def build(back: Back | ByHandle) -> FastAPI:
    app = FastAPI()

    @app.post(UNARY)
    async def unary(request: Request) -> Response:
        answer = await back.call(await request.body())
        return Response(answer, media_type="application/json")

    @app.post(STREAM)
    async def stream(request: Request) -> Response:
        items = back.stream(await request.body())
        return StreamingResponse(items, media_type="text/event-stream")

    return app


class Front:
    def __init__(self, back: DeploymentHandle[Any]) -> None:
        self._app = build(ByHandle(back))

    def __serve_build_asgi_app__(self) -> FastAPI:
        return self._app


def app(args: dict[str, Any]) -> Application:
    """Serve's builder: `import_path: tests.benchmarks.bare:app`."""
    little = {"num_cpus": 0.1}
    back = serve.deployment(name="Back", max_ongoing_requests=1000, ray_actor_options=little)(Back)
    front = serve.deployment(name="Front", max_ongoing_requests=1000, ray_actor_options=little)(
        serve.ingress()(Front)
    )
    return front.bind(back.bind())


if __name__ == "__main__":
    uvicorn.run(build(Back()), port=int(sys.argv[1]), log_level="warning", access_log=False)
