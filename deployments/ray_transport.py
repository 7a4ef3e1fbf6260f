"""The pipeline's Transport over Ray Serve handles."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator
from typing import Any, Final

from ray import serve
from ray.exceptions import RayError, RayTaskError, TaskCancelledError
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    RayServeException,
    RequestCancelledError,
)

from cluster.replica_router import route_by_affinity
from modelyard.contract.envelope import Answer, Envelope
from modelyard.contract.errors import Internal, Overloaded, ReplicaDied, ReplicaFailed, RequestError
from modelyard.routing.pool import Cell

log = logging.getLogger("modelyard.transport")

# Serve's own choice is cloudpickle, which walks what it writes in Python: 6 us for an Item, not 2.
# What is sent are records of importable classes.
PICKLE: Final = "pickle"


class RayTransport:
    """One handle per cell, made at first use and kept: a handle is a router with its own state."""

    def __init__(self) -> None:
        self._bases: dict[Cell, Any] = {}
        self._calls: dict[Cell, Any] = {}
        self._streams: dict[Cell, Any] = {}

    async def call(self, cell: Cell, envelope: Envelope) -> Answer:
        response = self._handle(cell, stream=False).remote(envelope)
        try:
            return await response  # type: ignore[no-any-return]
        except (RayError, RayServeException) as error:
            raise from_ray(error) from error
        finally:
            # A timed-out await leaves the replica working (so says Serve): always cancel. A no-op
            # once it is done.
            response.cancel()

    async def stream(self, cell: Cell, envelope: Envelope) -> AsyncGenerator[Answer]:
        items = self._handle(cell, stream=True).remote(envelope)
        try:
            async for item in items:
                yield item
        except (RayError, RayServeException) as error:
            raise from_ray(error) from error
        finally:
            items.cancel()

    def _handle(self, cell: Cell, *, stream: bool) -> Any:
        handles = self._streams if stream else self._calls
        handle = handles.get(cell)
        if handle is None:
            handle = handles[cell] = self._base(cell).options(
                stream=stream,
                method_name="stream" if stream else "call",
                request_serialization=PICKLE,
                response_serialization=PICKLE,
            )
        return handle

    def _base(self, cell: Cell) -> Any:
        """What both handles of a cell share: one router, or each would count half of the load."""
        base = self._bases.get(cell)
        if base is None:
            base = self._bases[cell] = serve.get_deployment_handle(
                cell.deployment,
                app_name=cell.app,
                # Asking the controller whether it exists would block the loop.
                _check_exists=False,
            )
            route_by_affinity(base)
        return base


def from_ray(error: Exception) -> RequestError:
    """Our error for what Ray says of a call.

    A dead process, a lost node and a lost object are all RayErrors of their own; the caller is told
    one thing, that the replica failed. A RayTaskError is an exception that a shell let out: a bug.
    """
    match error:
        case BackPressureError():
            return Overloaded("the model's queue is full", reason="queue_full", retry_after_s=1)
        case DeploymentUnavailableError():
            return Overloaded(
                "the model is not deployed or failed to deploy",
                reason="not_loaded",
                retry_after_s=30,
            )
        case RequestCancelledError() | TaskCancelledError():
            return ReplicaFailed("the request was cancelled inside the cluster", reason="cancelled")
        case RayTaskError():
            log.error("a shell let an exception out", exc_info=error)
            return Internal("an internal error in the model's replica", reason="replica_bug")
    replica = getattr(error, "actor_id", None) or f"unknown, {time.monotonic():.0f}"
    return ReplicaDied("the replica died while it was answering", replica=replica)
