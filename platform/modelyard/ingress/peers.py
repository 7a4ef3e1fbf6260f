"""What control and the other ingresses may ask of this one, by handle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from modelyard.contract.envelope import Failure
from modelyard.contract.errors import Forbidden, RequestError
from modelyard.control.client import INGRESS_ROLE
from modelyard.control.why import find_in_logs
from modelyard.quota.figures import Key
from modelyard.quota.gate import QuotaGate
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.tenancy.claim import verify

log = logging.getLogger("modelyard.ingress")


class Peers:
    """One per ingress process. Answers a Failure to a call without the platform's own claim."""

    def __init__(
        self, secret: bytes, ingress: str, gate: QuotaGate, logs: Path, now: Callable[[], float]
    ) -> None:
        self._secret = secret
        self._ingress = ingress
        self._gate = gate
        self._logs = logs
        self._now = now
        self._searching = asyncio.Semaphore(1)  # a search reads files: never many at once

    async def surrender(
        self, token: str, replies: Mapping[str, SplitReply], wanted: tuple[Key, ...] = ()
    ) -> HolderReport | Failure:
        """Take control's reply, if there is one for this ingress, and report the wanted buckets."""
        try:
            self._require(token)
        except RequestError as error:
            return error.failure()
        now = self._now()
        if (reply := replies.get(self._ingress)) is not None:
            self._gate.take(reply, now)
        return self._gate.brief_report(now, wanted)

    async def find_request(self, token: str, request_id: str) -> list[dict[str, Any]] | Failure:
        """The request log's lines of a request on this node."""
        try:
            self._require(token)
        except RequestError as error:
            return error.failure()
        async with self._searching:
            return await asyncio.to_thread(find_in_logs, self._logs, request_id)

    def _require(self, token: str) -> None:
        """Raises Unauthenticated or Forbidden."""
        if INGRESS_ROLE not in verify(token, self._secret).roles:
            raise Forbidden("only the platform itself may ask this", reason="role")
