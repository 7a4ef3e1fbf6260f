"""What every model replica shares: the claim check, deadlines, error mapping.

A shell has no `__call__` and no FastAPI app. In HAProxy mode the top deployment of every app
listens on all interfaces and answers through `__call__`; without one nothing can be reached.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, ClassVar

from prometheus_client.registry import Collector

from cluster.board import Board
from deployments import traced
from deployments.replica import Place, ServeReplica
from deployments.reporter import Reporter
from deployments.start import started
from deployments.vitals import Vitals
from modelyard.artifacts.manifest import Manifest
from modelyard.config.settings import Settings
from modelyard.contract.envelope import Answer, Envelope, Failure, Item
from modelyard.contract.errors import (
    DeadlineExceeded,
    Internal,
    InvalidRequest,
    RequestError,
    Unauthenticated,
)
from modelyard.contract.operations import OPERATIONS_OF, Kind, Operation
from modelyard.lifecycle.observed import Observed
from modelyard.lifecycle.progress import Progress
from modelyard.lifecycle.questions import Question
from modelyard.lifecycle.report import Description
from modelyard.lifecycle.watchdog import Evidence, Watchdog
from modelyard.telemetry.device_metrics import Devices
from modelyard.telemetry.exposition import Scrape
from modelyard.telemetry.process_metrics import ProcessMetrics
from modelyard.telemetry.replica_metrics import QueueMetrics
from modelyard.telemetry.tracing import Tracing, tracing_of
from modelyard.tenancy.claim import Claim, sign, verify
from modelyard.tenancy.entitlements import require_context, require_entitled

log = logging.getLogger("modelyard.shell")

_VERIFIED_CLAIMS_MAX = 4096


class Shell(ABC):
    """Base of the model deployments. A subclass loads, warms and answers; this does the rest."""

    KIND: ClassVar[Kind]

    folder: Path
    manifest: Manifest
    description: Description
    tracing: Tracing | None = None

    def __init__(self, args: Any) -> None:
        self.args = args
        self._app = ""
        self._ongoing = 0
        self.progress = Progress()
        self._claims: dict[str, Claim] = {}

    async def start(self) -> None:
        """Fetch, verify, load, warm and test; returns when the replica may serve."""
        replica = ServeReplica()
        self._app = replica.app
        self._reporter = Reporter(replica, Board(), self.ongoing)
        self._reporter.post()
        self._held = await started(self, replica, self._reporter)
        gpu_ids = replica.gpu_ids if self.place.gpus else ()  # emulated ones cannot be looked at
        devices = Devices.of(gpu_ids, declared_bytes_each(self.manifest))
        if devices is not None:
            self._metrics.add(devices)
        watchdog = Watchdog(self.args.watchdog.stall_after_s, self.progress.longest_step_s)
        self._reporter.vitals = vitals = Vitals(
            watchdog, self.evidence, self._reporter.tell, self.kill_engine, devices
        )
        vitals.start()
        self._reporter.keep_posting()

    def instrument(self, settings: Settings, replica: ServeReplica) -> None:
        """Metrics and traces of this process, and the key that claims are signed with."""
        self._secret = settings.secret()
        self._metrics = ProcessMetrics(
            replica.app, replica.replica, self._secret, *self.collectors()
        )
        self.tracing = tracing_of(settings, replica.app, replica.replica, edge=False)
        if self.tracing is not None:
            self._metrics.add(self.tracing.queue)

    def adopt(self, folder: Path, manifest: Manifest, place: Place, secret: bytes) -> None:
        """The version that this shell is to serve, and what it may use. secret: signs claims."""
        self.folder, self.manifest = folder, manifest
        self.description = Description.of(manifest)
        self.place, self._secret = place, secret

    @abstractmethod
    async def load(self) -> None:
        """Load `self.folder`. Must not block the loop for longer than it has to."""

    @abstractmethod
    async def warm(self) -> None:
        """Run every path whose first use is slow."""

    @abstractmethod
    async def observe(self, question: Question) -> Observed:
        """Its answer to a golden question, on the path that callers' requests take."""

    @abstractmethod
    async def answer(self, envelope: Envelope) -> Item:
        """The whole answer to a unary request. Raises RequestError."""

    def own_envelope(self, operation: Operation, body: bytes) -> Envelope:
        """A request of the platform's own, for warm-up and self-test. Its tenant is nobody else's,
        so that nothing of it is found in another tenant's prefix cache."""
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
        self._reporter.require_posting()

    async def scrape(self, token: str) -> Scrape | Failure:
        """This process's metrics. token: a signed claim with the role scrape."""
        return await self._metrics.scrape(token)

    def collectors(self) -> tuple[Collector, ...]:
        """The sources of this replica's metrics."""
        return (QueueMetrics(lambda: (self._ongoing, 0)),)

    @abstractmethod
    def evidence(self) -> Evidence:
        """What says whether it makes progress. For the watchdog's thread."""

    def kill_engine(self) -> None:
        """End the processes of its own that would outlive it. For the watchdog's thread."""
        return

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


def declared_bytes_each(manifest: Manifest) -> int | None:
    """What a version declares of each of its accelerators: min_memory_gb is that of all."""
    declared = manifest.device.min_memory_gb
    return None if declared is None else int(declared * 1e9) // max(1, manifest.device.accelerators)
