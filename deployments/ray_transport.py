"""The pipeline's Transport over Ray Serve handles."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Final

from ray import serve
from ray.exceptions import RayActorError
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    RayServeException,
    RequestCancelledError,
)

from modelyard.contract.envelope import Answer, Envelope
from modelyard.contract.errors import Overloaded, ReplicaFailed, RequestError
from modelyard.contract.operations import Kind, Operation, answers

DEPLOYMENT_OF: Final = {
    Kind.GENERATOR: "Generator",
    Kind.EMBEDDER: "Embedder",
    Kind.CLASSIFIER: "Classifier",
    Kind.RERANKER: "Reranker",
}


class RayTransport:
    """One handle per app, made at first use and kept: a handle is a router with its own state."""

    def __init__(self) -> None:
        self._calls: dict[str, Any] = {}
        self._streams: dict[str, Any] = {}

    async def call(self, app: str, envelope: Envelope) -> Answer:
        response = self._handle(app, envelope, stream=False).remote(envelope)
        try:
            return await response  # type: ignore[no-any-return]
        except (RayActorError, RayServeException) as error:
            raise from_ray(error) from error
        finally:
            # A timed-out await leaves the replica working (so says Serve): always cancel. A no-op
            # once it is done.
            response.cancel()

    async def stream(self, app: str, envelope: Envelope) -> AsyncGenerator[Answer]:
        items = self._handle(app, envelope, stream=True).remote(envelope)
        try:
            async for item in items:
                yield item
        except (RayActorError, RayServeException) as error:
            raise from_ray(error) from error
        finally:
            items.cancel()

    def _handle(self, app: str, envelope: Envelope, *, stream: bool) -> Any:
        handles = self._streams if stream else self._calls
        handle = handles.get(app)
        if handle is None:
            kind = next(k for k in Kind if answers(k, Operation(envelope.operation)))
            base = serve.get_deployment_handle(DEPLOYMENT_OF[kind], app_name=app)
            handle = handles[app] = base.options(
                stream=stream, method_name="stream" if stream else "call"
            )
        return handle


def from_ray(error: Exception) -> RequestError:
    """Our error for what Ray says of a call. A lost node is ActorUnavailable, a dead process is
    ActorDied: RayActorError is the base of both."""
    match error:
        case RayActorError():
            return ReplicaFailed("the replica died while it was answering", reason="replica_died")
        case BackPressureError():
            return Overloaded("the model's queue is full", reason="queue_full", retry_after_s=1)
        case DeploymentUnavailableError():
            return Overloaded(
                "the model is not deployed or failed to deploy",
                reason="not_loaded",
                retry_after_s=30,
            )
        case RequestCancelledError():
            return ReplicaFailed("the request was cancelled inside the cluster", reason="cancelled")
    return ReplicaFailed("the call to the replica failed", reason="call_failed")
