"""Ingress: the one deployment that speaks HTTP. Wires the pipeline to Ray and to the table."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from ray import serve
from ray.serve import Application
from starlette.types import ASGIApp

from cluster.board import Board
from deployments.control_client import RayControl
from deployments.follow_board import FollowBoard
from deployments.follow_control import FollowControl
from deployments.one_request_id import one_request_id
from deployments.ray_transport import RayTransport
from deployments.scrape import PlatformScraper
from deployments.serves_only import serves_only
from modelyard.config.model_args import NoArgs
from modelyard.config.settings import Settings
from modelyard.config.table import parse_table
from modelyard.contract.envelope import Failure
from modelyard.contract.errors import ConfigError
from modelyard.contract.reply import Reply
from modelyard.control.usage import UsageLedger
from modelyard.ingress import admin, metrics
from modelyard.ingress.app import build_app
from modelyard.ingress.by_handle import ByHandle
from modelyard.ingress.judge import Judge
from modelyard.ingress.peers import Peers
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.shadow import Shadow
from modelyard.ingress.shadow_call import ShadowCalls
from modelyard.ingress.shadow_metrics import ShadowMetrics
from modelyard.ingress.usage import count
from modelyard.quota.figures import Key
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Cell
from modelyard.telemetry.exposition import Scrape
from modelyard.telemetry.process_metrics import ProcessMetrics
from modelyard.telemetry.quota_metrics import QuotaMetrics
from modelyard.telemetry.request_log import RequestLog, RequestRecord
from modelyard.telemetry.request_metrics import RequestMetrics
from modelyard.telemetry.request_observer import RequestObserver
from modelyard.telemetry.tracing import tracing_of
from modelyard.tenancy.signing_keys import JwksSource

log = logging.getLogger("modelyard.ingress")


class Ingress:
    """One ingress replica. Reads the fleet from the board and never waits for it on a request.

    A handle can name every method, dunders too. `ask` and `ask_stream` check the key first, like
    HTTP does, and so does the app behind `__call__`. What Serve itself calls to start, configure
    and stop a replica refuses a handle (`serves_only`, which says what that does not keep out).
    """

    def __init__(self) -> None:
        settings = Settings.from_environment()
        context = serve.get_replica_context()
        app, replica, secret = context.app_name, context.replica_id.unique_id, settings.secret()
        self._log = RequestLog(settings.logs, replica)
        self._usage = UsageLedger()
        counts = RequestMetrics(time.monotonic)
        self._metrics = ProcessMetrics(app, replica, secret, counts)
        self._tracing = tracing_of(settings, app, replica, edge=True)
        if self._tracing is not None:
            self._metrics.add(self._tracing.queue)
        self._signing_keys = JwksSource()
        transport = RayTransport()
        self._pipeline = Pipeline(
            secret,
            transport,
            Fleet(),
            write_log=self._written,
            observer=RequestObserver(counts, self._tracing),
            ingress=replica,
            signing_keys=self._signing_keys,
        )
        self._metrics.add(QuotaMetrics(lambda: self._pipeline.metering.gate.tallies))
        # Its records go to the log alone: nobody asked for what they are of.
        calls = ShadowCalls(self._pipeline, transport, secret, self._log.write)
        judge = Judge(self._pipeline, calls)
        shadow = Shadow(self._pipeline, calls, judge)
        self._pipeline.observers = (shadow, judge)
        self._metrics.add(ShadowMetrics(shadow, judge))
        self._scraper = PlatformScraper(self._metrics, Cell(app, context.deployment), Board())
        self._control = RayControl(secret, app)
        self._pipeline.metering.recall = self._control.recall
        self._peers = Peers(
            secret, replica, self._pipeline.metering.gate, settings.logs, time.monotonic
        )
        self._by_handle = ByHandle(self._pipeline)
        self._background: list[asyncio.Task[None]] = []

    def __serve_build_asgi_app__(self) -> ASGIApp:
        app = build_app(self._pipeline)
        metrics.add_routes(app, self._pipeline, self._scraper)
        admin.add_routes(app, self._pipeline, self._control)
        return one_request_id(app)

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

    async def scrape(self, token: str) -> Scrape | Failure:
        """This process's metrics, for an ingress; `token` is a signed claim."""
        return await self._metrics.scrape(token)

    async def surrender(
        self, token: str, replies: dict[str, SplitReply], wanted: tuple[Key, ...] = ()
    ) -> HolderReport | Failure:
        """For control, which gathers quota; `token` is the platform's own claim."""
        return await self._peers.surrender(token, replies, wanted)

    async def find_request(self, token: str, request_id: str) -> list[dict[str, Any]] | Failure:
        """For an ingress that is asked what became of a request."""
        return await self._peers.find_request(token, request_id)

    async def reconfigure(self, user_config: Any) -> None:
        """Adopt a table. Never raises to Serve: a bad table must not take a serving ingress down.

        The last good table stays in force. Before the first good one every request is answered
        503, and /health/ready says so.
        """
        try:
            self._pipeline.adopt(parse_table(user_config))
        except ConfigError as error:
            self._pipeline.refuse_table(str(error))
            log.error("this table is refused, the last good one stays: %s", error)
        except Exception as error:
            # The edge of the process: raising here would take a serving ingress down.
            self._pipeline.refuse_table(f"a bug of ours, in the log: {error!r}")
            log.exception("this table could not be taken, the last good one stays")
        if not self._background:
            await self._start_following()

    async def _start_following(self) -> None:
        board = FollowBoard(self._pipeline, Board())
        control = FollowControl(self._pipeline, self._control, self._usage)
        followed = (board.run(), self._signing_keys.run())
        self._background = [asyncio.create_task(one) for one in followed]
        if self._pipeline.metering.gate.metered:
            await control.first()
        self._background.append(asyncio.create_task(control.run()))

    def _written(self, record: RequestRecord) -> None:
        self._log.write(record)
        count(self._usage, record)
        self._pipeline.outcomes.add(record)

    def __del__(self) -> None:
        """Serve calls this when the replica has drained: the last log lines reach the disk."""
        for observer in self._pipeline.observers:
            observer.close()
        self._log.close()
        if self._tracing is not None:
            self._tracing.close()


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
