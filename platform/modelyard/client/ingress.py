"""The ingress deployment as a job of the same Ray cluster reaches it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

import ray
from ray.exceptions import RayError, RayTaskError
from ray.serve.exceptions import (
    BackPressureError,
    DeploymentUnavailableError,
    RayServeException,
)
from ray.serve.handle import DeploymentHandle

from modelyard.contract.errors import (
    ConfigError,
    Internal,
    Overloaded,
    ReplicaFailed,
    RequestError,
)
from modelyard.contract.reply import Failure, Reply

APP: Final = "ingress"
DEPLOYMENT: Final = "Ingress"


class Ingress(Protocol):
    """Takes a request and answers it, or says why not. Raises RequestError for its own death."""

    async def ask(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> Reply | Failure: ...

    def ask_stream(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> AsyncGenerator[bytes | Reply | Failure]: ...


class RayIngress:
    """By handle, made at first use: then the job must have joined the cluster (`ray.init`)."""

    def __init__(self) -> None:
        self._base: Any = None

    async def ask(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> Reply | Failure:
        with _errors_of_ray():
            response = self._method("ask", stream=False).remote(key, operation, body, headers)
            try:
                return await response  # type: ignore[no-any-return]
            finally:
                _cancel(response)

    async def ask_stream(
        self, key: str, operation: str, body: bytes, headers: dict[str, str]
    ) -> AsyncGenerator[bytes | Reply | Failure]:
        with _errors_of_ray():
            items = self._method("ask_stream", stream=True).remote(key, operation, body, headers)
            try:
                async for item in items:
                    yield item
            finally:
                _cancel(items)

    def _method(self, name: str, *, stream: bool) -> Any:
        if self._base is None:
            if not ray.is_initialized():  # Serve would start a cluster of its own
                raise ConfigError("join the platform's cluster first: ray.init(address=...)")
            # Not serve.get_deployment_handle: that one is shared by the process, and other code may
            # have tied it to its event loop. On a loop of its own it serves callers of any.
            self._base = DeploymentHandle(DEPLOYMENT, APP)
            self._base._init(_run_router_in_separate_loop=True)
        # By reference means actor calls, also where the process inherited the replicas' choice of
        # gRPC: gRPC's calls cannot be cancelled from another thread.
        return self._base.options(method_name=name, stream=stream, _by_reference=True)


def _cancel(response: Any) -> None:
    """A call that is no longer awaited goes on in the replica unless it is cancelled."""
    with suppress(RayError, RayServeException):  # what a call that has failed says once more
        response.cancel()


@contextmanager
def _errors_of_ray() -> Iterator[None]:
    try:
        yield
    except (RayError, RayServeException) as error:
        raise from_ray(error) from error


def from_ray(error: Exception) -> RequestError:
    """Our error for what Ray says of a call to the ingress."""
    match error:
        case BackPressureError():
            return Overloaded("the ingress is full", reason="queue_full", retry_after_s=1)
        case DeploymentUnavailableError():
            return Overloaded("the ingress failed to deploy", reason="not_loaded", retry_after_s=30)
        case RayTaskError():
            return Internal(f"the ingress let an exception out: {error.cause!r}")
        case RayServeException():
            return Internal(f"Ray Serve cannot pass the call on: {error}")
    return ReplicaFailed("the ingress replica died under the request", reason="ingress_died")
