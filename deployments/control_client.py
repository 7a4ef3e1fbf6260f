"""How an ingress reaches control over Ray: every call with a limit and an explicit cancel."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final

from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException

from deployments.broadcast import ask_all
from modelyard.contract.envelope import Failure
from modelyard.contract.errors import from_failure
from modelyard.control.client import Found, control_down, ingress_token
from modelyard.control.report import ControlReply, ControlReport
from modelyard.quota.messages import HolderReport, SplitReply

log = logging.getLogger("modelyard.ingress")

APP: Final = "control"
DEPLOYMENT: Final = "Control"
ADMIN_WAIT_S: Final = 2.0
EXCHANGE_WAIT_S: Final = 1.0
RECALL_WAIT_S: Final = 0.25
FIND_WAIT_S: Final = 2.0


class RayControl:
    """One per ingress process: modelyard.control.client.ControlClient, and the quota calls."""

    def __init__(self, secret: bytes, ingress_app: str) -> None:
        """ingress_app: the Serve app of this ingress, whose replicas know each request's fate."""
        self._token = ingress_token(secret)
        self._ingress_app = ingress_app
        self._handles: dict[tuple[str, str], Any] = {}

    async def admin(self, token: str, verb: str, args: Mapping[str, Any], request: str) -> Any:
        """Control's answer to an operator. Raises RequestError: its own, or `control_down`."""
        answer = await self._call(ADMIN_WAIT_S, "admin", token, verb, dict(args), request)
        if answer is None:
            raise control_down()
        if isinstance(answer, Failure):
            raise from_failure(answer)
        return answer

    async def find_request(self, request_id: str) -> Found:
        """What every ingress's log holds of a request."""
        answers = await ask_all(
            self._handle(self._ingress_app, "Ingress"),
            "find_request",
            self._token,
            request_id,
            timeout_s=FIND_WAIT_S,
        )
        told = [answer for answer in answers.given if not isinstance(answer, Failure)]
        lines = [line for answer in told for line in answer]
        lines.sort(key=lambda line: str(line.get("ts", "")))
        return Found(tuple(lines), answers.asked, answers.asked - len(told))

    async def exchange(self, report: ControlReport) -> ControlReply | None:
        """The report of the second; None when control did not answer in time."""
        answer = await self._call(EXCHANGE_WAIT_S, "exchange", self._token, report)
        return answer if isinstance(answer, ControlReply) else None

    async def recall(self, report: HolderReport) -> SplitReply | None:
        """For a request that cannot be afforded; None when nothing came in time."""
        answer = await self._call(RECALL_WAIT_S, "recall", self._token, report)
        return answer if isinstance(answer, SplitReply) else None

    async def last_table(self) -> Any:
        """The last good table as it was given; None when there is none, or control is away."""
        answer = await self._call(ADMIN_WAIT_S, "last_table", self._token)
        return None if isinstance(answer, Failure) else answer

    async def _call(self, timeout_s: float, method: str, *args: Any) -> Any:
        """None when it was not answered."""
        response = None
        try:
            response = getattr(self._handle(APP, DEPLOYMENT), method).remote(*args)
            async with asyncio.timeout(timeout_s):
                return await response
        except (TimeoutError, RayError, RayServeException) as error:
            log.debug("control did not answer %s: %r", method, error)
            return None
        finally:
            if response is not None:
                response.cancel()

    def _handle(self, app: str, deployment: str) -> Any:
        handle = self._handles.get((app, deployment))
        if handle is None:
            # Asking the controller whether it exists would block the loop.
            handle = serve.get_deployment_handle(deployment, app_name=app, _check_exists=False)
            self._handles[app, deployment] = handle
        return handle
