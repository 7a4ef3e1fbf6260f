"""What every model replica shares: start-up phases, the claim check, deadlines, error mapping.

A shell has no `__call__` and no FastAPI app. In HAProxy mode the top deployment of every app
listens on all interfaces and answers through `__call__`; without one nothing can be reached.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, ClassVar

import ray
from prometheus_client.registry import Collector
from ray import serve

from cluster.board import Board
from deployments import traced
from modelyard.artifacts.manifest import Manifest, read_manifest
from modelyard.artifacts.store import resolve
from modelyard.artifacts.verify import verify as verify_files
from modelyard.config.settings import Settings
from modelyard.contract.envelope import Answer, Envelope, Failure, Item
from modelyard.contract.errors import (
    ArtifactError,
    DeadlineExceeded,
    Internal,
    InvalidRequest,
    RequestError,
    Unauthenticated,
)
from modelyard.contract.operations import OPERATIONS_OF, Kind, Operation
from modelyard.lifecycle.phases import Phase, PhaseLog
from modelyard.lifecycle.report import Description, ReplicaReport
from modelyard.telemetry.exposition import Scrape
from modelyard.telemetry.process_metrics import ProcessMetrics
from modelyard.telemetry.replica_metrics import QueueMetrics
from modelyard.telemetry.tracing import Tracing, tracing_of
from modelyard.tenancy.claim import Claim, sign, verify
from modelyard.tenancy.entitlements import require_context, require_entitled

log = logging.getLogger("modelyard.shell")

POST_PERIOD_S = 1.0
POST_WITHIN_S = 3.0
_VERIFIED_CLAIMS_MAX = 4096


class Shell(ABC):
    """Base of the model deployments. A subclass loads, warms and answers; this does the rest."""

    KIND: ClassVar[Kind]

    folder: Path
    manifest: Manifest
    description: Description
    tracing: Tracing | None = None

    def __init__(self, args: Any) -> None:
        self._args = args
        self._ongoing = 0
        self._claims: dict[str, Claim] = {}

    async def start(self, artifact: str) -> None:
        """Verify, load and warm; returns when the replica may serve. Posts each phase."""
        context = serve.get_replica_context()
        self._app = context.app_name
        self._replica = context.replica_id.unique_id
        self._node = ray.get_runtime_context().get_node_id()
        self._board = Board()
        self._phases = PhaseLog(time.monotonic)
        self._post()
        try:
            settings = Settings.from_environment()
            self._secret = settings.secret()
            self._metrics = ProcessMetrics(
                self._app, self._replica, self._secret, *self.collectors()
            )
            self.tracing = tracing_of(settings, self._app, self._replica, edge=False)
            if self.tracing is not None:
                self._metrics.add(self.tracing.queue)
            await self._verify(resolve(artifact, settings.home))
            self._enter(Phase.LOADING)
            await self.load()
            self._enter(Phase.WARMING)
            await self.warm()
        except Exception as error:
            # Whatever it was, the fleet must learn why before Serve throws this process away.
            self._enter(Phase.FAILED, cause=str(error) or type(error).__name__)
            await asyncio.sleep(0.2)  # the post is sent in the background; Serve kills us at once
            raise
        self._enter(Phase.READY)
        self._poster = asyncio.create_task(self._keep_posting())

    @abstractmethod
    async def load(self) -> None:
        """Load `self.folder`. Must not block the loop for longer than it has to."""

    @abstractmethod
    async def warm(self) -> None:
        """Run every path whose first use is slow."""

    @abstractmethod
    async def answer(self, envelope: Envelope) -> Item:
        """The whole answer to a unary request. Raises RequestError."""

    def warm_envelope(self, operation: Operation, body: bytes) -> Envelope:
        """A request of the platform's own, for warm-up."""
        own = Claim("modelyard", "warm-up", "platform", "local", "interactive", (), ("*",))
        return Envelope(
            claim=sign(own, self._secret),
            version=self.manifest.full_name,
            operation=operation,
            body=body,
            stream=False,
            budget_ms=600_000,
            band="interactive",
            request_id="warm-up",
            answer_id="warm-up",
            model_alias=self.manifest.full_name,
        )

    async def check_health(self) -> None:
        """Raises when this process cannot serve any more. Downstream is never asked."""
        if self._poster.done():
            raise RuntimeError("this replica has stopped posting, so no ingress sends it anything")

    async def scrape(self, token: str) -> Scrape | Failure:
        """This process's metrics. token: a signed claim with the role scrape."""
        return await self._metrics.scrape(token)

    def collectors(self) -> tuple[Collector, ...]:
        """The sources of this replica's metrics."""
        return (QueueMetrics(lambda: (self._ongoing, 0)),)

    def ongoing(self) -> int:
        """Requests that this replica works on."""
        return self._ongoing

    def reconfigure(self, user_config: Any) -> None:
        """Adopt tunables. A shell without any refuses them in its log; none ever raises."""
        log.error("%s takes no user_config: remove it", self._app)

    async def stream(self, envelope: Envelope) -> AsyncGenerator[Answer]:
        """Items as they are made; for a model that answers at once, the one answer."""
        yield await self.call(envelope)

    async def call(self, envelope: Envelope) -> Answer:
        """One request, one answer. Never raises for a request's own fault: it answers a Failure."""
        self._ongoing += 1
        try:
            self.admit(envelope)
            traced.enter("engine")
            async with asyncio.timeout(envelope.budget_ms / 1000):
                return await self.answer(envelope)
        except Exception as error:  # noqa: BLE001  the edge of the process: map, log, never leak
            return self.failure(error, envelope)
        finally:
            self._ongoing -= 1

    def failure(self, error: Exception, envelope: Envelope) -> Failure:
        """The Failure for whatever went wrong while answering."""
        match error:
            case RequestError():
                return error.failure()
            case TimeoutError():
                return DeadlineExceeded(
                    "the total deadline passed while the model was working", reason="total"
                ).failure()
        request_id = getattr(envelope, "request_id", "unknown")
        log.error("request %s failed in %s", request_id, self._app, exc_info=error)
        return Internal(
            f"an internal error; it is logged under the request id {request_id}"
        ).failure()

    def claim_of(self, envelope: Envelope) -> Claim:
        """The verified claim of a call, kept once verified. Raises Unauthenticated."""
        claim = self._claims.get(envelope.claim)
        if claim is None:
            claim = verify(envelope.claim, self._secret)
            if len(self._claims) >= _VERIFIED_CLAIMS_MAX:
                self._claims.clear()
            self._claims[envelope.claim] = claim
        return claim

    def require_context(
        self, envelope: Envelope, tokens: int, param: str, cap_tokens: int = 0
    ) -> None:
        """Refuse more of a context than the tenant may use. Raises Forbidden."""
        require_context(self.claim_of(envelope).max_context_tokens, tokens, param, cap_tokens)

    def admit(self, envelope: Envelope) -> None:
        """Refuse strays, other versions' requests, what the claim does not allow and work that is
        already too late."""
        if not isinstance(envelope, Envelope):
            raise Unauthenticated("the call is no envelope: models are reached through the ingress")
        claim = self.claim_of(envelope)
        if envelope.version != self.manifest.full_name:
            raise InvalidRequest(
                f"this replica serves {self.manifest.full_name}, not {envelope.version}"
            )
        if envelope.operation not in OPERATIONS_OF[self.KIND]:
            raise InvalidRequest(f"a {self.KIND} cannot answer {envelope.operation!r}")
        require_entitled(claim, envelope)
        if envelope.budget_ms <= 0:
            raise DeadlineExceeded(
                "the deadline passed before the model began", reason="expired", retryable=True
            )

    async def _verify(self, folder: Path) -> None:
        self._enter(Phase.VERIFYING)
        self.folder = folder
        self.manifest = read_manifest(self.folder)
        if self.manifest.kind is not self.KIND:
            raise ArtifactError(
                f"{self.folder}: the artifact is a {self.manifest.kind}, this deployment serves a "
                f"{self.KIND}: use import_path deployments.{self.manifest.kind}:app"
            )
        if self.manifest.full_name != self._app.partition("--")[0]:
            raise ArtifactError(
                f"{self.folder}: the artifact is {self.manifest.full_name}, but the app is named "
                f"{self._app}: name the app after the artifact"
            )
        await asyncio.to_thread(verify_files, self.folder, self.manifest)
        self.description = Description.of(self.manifest)

    def _enter(self, phase: Phase, cause: str | None = None) -> None:
        self._phases.enter(phase)
        log.info("%s %s: %s%s", self._app, self._replica, phase, f": {cause}" if cause else "")
        self._post(cause)

    def _post(self, cause: str | None = None) -> None:
        self._board.post(self._report(cause))

    def _report(self, cause: str | None = None) -> ReplicaReport:
        return ReplicaReport(
            app=self._app,
            replica=self._replica,
            node=self._node,
            pid=os.getpid(),
            phase=self._phases.phase,
            phase_s=self._phases.phase_s,
            phases=self._phases.done,
            ongoing=self.ongoing(),
            slots=_slots(),
            description=getattr(self, "description", None),
            cause=cause,
        )

    async def _keep_posting(self) -> None:
        """Once a second, for ever: a replica that stops posting counts as gone."""
        while True:
            await asyncio.sleep(POST_PERIOD_S)
            try:
                async with asyncio.timeout(POST_WITHIN_S):
                    await self._board.confirm(self._report())
            except Exception as error:  # noqa: BLE001  the edge of a background task
                log.warning("the board did not take a post, the next may reach it: %r", error)


def _slots() -> int:
    """This replica's max_ongoing_requests, as it is now: Serve changes it without a restart.

    Private in Ray 2.60 and nowhere public: a replica's own context has the number of replicas but
    not their size, and the ingress's handle knows it as privately.
    """
    return int(serve.get_replica_context()._deployment_config.max_ongoing_requests)
