"""Ingress: the one deployment that speaks HTTP. Wires the pipeline to Ray and to the table."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from ray import serve
from ray.serve import Application
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.follow_board import follow_board
from deployments.ray_transport import RayTransport
from deployments.serves_only import serves_only
from modelyard.config.model_args import NoArgs
from modelyard.config.settings import Settings
from modelyard.config.table import parse_table
from modelyard.contract.envelope import Failure
from modelyard.contract.errors import ConfigError
from modelyard.contract.headers import REQUEST_ID
from modelyard.contract.reply import Reply
from modelyard.ingress.app import build_app
from modelyard.ingress.by_handle import ByHandle
from modelyard.ingress.pipeline import Pipeline
from modelyard.routing.fleet import Fleet
from modelyard.telemetry.request_log import RequestLog

log = logging.getLogger("modelyard.ingress")


class Ingress:
    """One ingress replica. Reads the fleet from the board and never waits for it on a request.

    A handle can name every method, dunders too. `ask` and `ask_stream` check the key first, like
    HTTP does, and so does the app behind `__call__`. What Serve itself calls to start, configure
    and stop a replica refuses a handle (`serves_only`, which says what that does not keep out).
    """

    def __init__(self) -> None:
        settings = Settings.from_environment()
        replica = serve.get_replica_context().replica_id.unique_id
        self._log = RequestLog(settings.logs, replica)
        self._pipeline = Pipeline(
            settings.secret(), RayTransport(), Fleet(), write_log=self._log.write
        )
        self._by_handle = ByHandle(self._pipeline)
        self._reader: asyncio.Task[None] | None = None

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return one_request_id(build_app(self._pipeline))

    async def ask(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> Reply | Failure:
        """One answer, for modelyard.client."""
        return await self._by_handle.ask(key, operation, body, headers)

    async def ask_stream(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> AsyncGenerator[bytes | Reply | Failure]:
        """A streamed answer, for modelyard.client."""
        async with aclosing(self._by_handle.ask_stream(key, operation, body, headers)) as items:
            async for item in items:
                yield item

    async def reconfigure(self, user_config: Any) -> None:
        """Adopt a table. Never raises to Serve: a bad table must not take a serving ingress down.

        The last good table stays in force. Before the first good one every request is answered
        503, and /health/ready says so.
        """
        if self._reader is None:
            self._reader = asyncio.get_running_loop().create_task(follow_board(self._pipeline))
        try:
            self._pipeline.adopt(parse_table(user_config))
        except ConfigError as error:
            log.error("this table is refused, the last good one stays: %s", error)

    def __del__(self) -> None:
        """Serve calls this when the replica has drained: the last log lines reach the disk."""
        self._log.close()


def one_request_id(inner: ASGIApp) -> ASGIApp:
    """Drop our X-Request-Id where Serve will add the same one: it appends without looking.

    When the caller's id is not well-formed ours differs, and stands before Serve's echo of it.
    """

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        given = Headers(scope=scope).get(REQUEST_ID, "")

        async def send_once(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get(REQUEST_ID) == given:
                    del headers[REQUEST_ID]
            await send(message)

        await inner(scope, receive, send_once)

    return wrapped


OF_SERVE: Final = (
    "__del__",
    "__serve_build_asgi_app__",
    "_set_asgi_app",
    "_run_asgi_lifespan_startup",
)

# Called and not used as decorators: type checkers do not see what a class decorator makes.
deployment = serve.deployment(
    name="Ingress",
    max_ongoing_requests=1000,
    graceful_shutdown_timeout_s=120,
    health_check_period_s=5,
)(serves_only(serve.ingress()(Ingress), *OF_SERVE))


def app(args: NoArgs) -> Application:
    """Serve's builder: `import_path: deployments.ingress:app`."""
    return deployment.bind()
