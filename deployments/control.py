"""Control: one replica that decides what every ingress obeys. Nothing on a request waits for it.

No `__call__` and no FastAPI app: operators come through the ingress's `/admin`. Like the door of a
model, this class holds nothing that a handle could name but what takes a signed claim first.
"""

from typing import Any

from ray import serve
from ray.serve import Application

from deployments.control_host import ControlHost
from deployments.serves_only import serves_only
from modelyard.config.model_args import ControlArgs
from modelyard.contract.envelope import Failure
from modelyard.control.report import ControlReply, ControlReport
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.telemetry.exposition import Scrape


class Control:
    """Opens a ControlHost and passes calls on to it."""

    async def __init__(self, state_path: str) -> None:  # type: ignore[misc]
        self._host = ControlHost(state_path)
        await self._host.start()
        self._host.warm_up()

    async def admin(
        self, token: str, verb: str, args: dict[str, Any], request: str
    ) -> dict[str, Any] | Failure:
        """An operator's verb, under the claim of a key with the role admin."""
        return await self._host.admin(token, verb, args, request)

    async def exchange(self, token: str, report: ControlReport) -> ControlReply | Failure:
        """An ingress's report of the second."""
        return await self._host.exchange(token, report)

    async def recall(self, token: str, need: HolderReport) -> SplitReply | Failure | None:
        """Gather quota for an ingress that cannot afford a request."""
        return await self._host.recall(token, need)

    async def last_table(self, token: str) -> dict[str, Any] | Failure | None:
        """The last good table, for a new ingress whose own is bad; None before the first."""
        return await self._host.last_table(token)

    async def scrape(self, token: str) -> Scrape | Failure:
        """This process's metrics, for an ingress; `token` is a signed claim."""
        return await self._host.scrape(token)

    async def check_health(self) -> None:
        self._host.check_health()

    async def reconfigure(self, user_config: Any) -> None:
        """Adopt a table. Never raises to Serve: a bad one must not take control down."""
        self._host.adopt(user_config)


# max_surge 0, Serve's default: it stops before its successor starts. Called and not used as
# decorators: type checkers do not see what a class decorator makes.
deployment = serve.deployment(
    name="Control",
    num_replicas=1,
    max_ongoing_requests=200,
    graceful_shutdown_timeout_s=10,
    health_check_period_s=2,
    health_check_timeout_s=10,
)(serves_only(Control))


def app(args: ControlArgs) -> Application:
    """Serve's builder: `import_path: deployments.control:app`."""
    return deployment.bind(args.state_path)
