"""The door of a model replica: what a handle can call.

A Serve handle calls any method of a deployment by its name, `load` and `_post` as well as `call`.
So the deployment is this thin class, and no method of the shell behind it can be named. `call` and
`stream` want a claim, `check_health` tells nothing, and what else Serve calls refuses a handle
(deployments/serves_only.py, which says what that does not keep out).
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ray import serve
from ray.serve import Deployment
from ray.serve.config import RequestRouterConfig

from deployments import traced
from deployments.serves_only import serves_only
from deployments.shell import Shell
from modelyard.contract.envelope import Answer, Envelope, Failure
from modelyard.contract.operations import DEPLOYMENT_OF
from modelyard.telemetry.exposition import Scrape

# The router's class is the caller's (cluster/replica_router.py): HAProxy mode refuses one here.
# Serve's default back-off of up to 0.5 s leaves slots empty while requests wait for them.
ROUTER = RequestRouterConfig.model_validate(
    {"initial_backoff_s": 0.01, "backoff_multiplier": 2, "max_backoff_s": 0.04}
)
# A backstop for each caller's handle, well above any burst it should admit: Serve counts requests
# that are merely being assigned, and refuses early. What waits longer than its deadline is a 504.
MAX_QUEUED_REQUESTS = 400


class Door:
    """Opens a shell and passes calls on to it. A subclass only names its shell."""

    SHELL: type[Shell]

    async def __init__(self, args: Any) -> None:  # type: ignore[misc]
        self._shell = self.SHELL(args)
        await self._shell.start()

    async def call(self, envelope: Envelope) -> Answer:
        if self._shell.tracing is not None:
            return await traced.traced_call(self._shell.tracing, envelope, self._shell.call)
        return await self._shell.call(envelope)

    async def stream(self, envelope: Envelope) -> AsyncGenerator[Answer]:
        stream = self._shell.stream(envelope)
        if self._shell.tracing is not None:
            stream = traced.traced_stream(self._shell.tracing, envelope, self._shell.stream)
        async with aclosing(stream) as items:
            async for item in items:
                yield item

    async def scrape(self, token: str) -> Scrape | Failure:
        """This process's metrics, for an ingress; `token` is a signed claim."""
        return await self._shell.scrape(token)

    async def check_health(self) -> None:
        await self._shell.check_health()

    async def reconfigure(self, user_config: Any) -> None:
        """Never raises to Serve, which would kill the replica: the shell logs what it refuses."""
        self._shell.reconfigure(user_config)


def deployment_of(shell: type[Shell], *, max_ongoing_requests: int) -> Deployment:
    """The Serve deployment of a shell, under the name that its kind is called by.

    A function and not a decorator: type checkers do not see what a class decorator makes.
    """
    name = DEPLOYMENT_OF[shell.KIND]
    made = serves_only(type(name, (Door,), {"SHELL": shell, "__module__": shell.__module__}))
    return serve.deployment(
        name=name,
        max_ongoing_requests=max_ongoing_requests,
        max_queued_requests=MAX_QUEUED_REQUESTS,
        graceful_shutdown_timeout_s=90,
        health_check_period_s=2,
        health_check_timeout_s=10,
        request_router_config=ROUTER,
    )(made)
