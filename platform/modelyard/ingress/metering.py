"""Quota on the data path: reserved before a request is sent, settled when its books close."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from modelyard.contract.errors import RequestError
from modelyard.ingress.charge import charge
from modelyard.ingress.prepared import Prepared
from modelyard.quota.gate import QuotaGate
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.quota.reservation import Need, Outcome, Refusal

RECALL_WAIT_S: Final = 0.05

Recall = Callable[[HolderReport], Awaitable[SplitReply | None]]


class Metering:
    """One per ingress process. `recall` asks control, which gathers what others do not need."""

    def __init__(self, ingress: str, now: Callable[[], float]) -> None:
        self._now = now
        self._recalling = asyncio.Lock()
        self.gate = QuotaGate(ingress, now())
        self.recall: Recall | None = None

    async def reserve(self, prepared: Prepared) -> None:
        """Take what the request may use. Raises RateLimited, InvalidRequest for what never fits."""
        need = prepared.need
        if need is None:
            return
        prepared.record.enter("quota")
        outcome = self.gate.reserve(need, self._now())
        if self.recall is not None and self.gate.should_recall(outcome, self._now()):
            outcome = await self._recalled(need, outcome, self.recall)
        try:
            prepared.reservation = self.gate.admitted(outcome, self._now())
        except RequestError as error:
            error.headers = self._headers(need)
            raise
        taken = prepared.reservation.taken
        prepared.record.reserved_tokens = taken.get("input", 0) + taken.get("output", 0)
        prepared.rate_limits = self._headers(need)

    def settle(self, prepared: Prepared) -> None:
        """Give back or charge the difference. Once: the gate refuses a second time."""
        if prepared.reservation is None:
            return
        used = charge(prepared.record)
        need = prepared.reservation.need
        read = need.input_tokens if used.input_tokens is None else used.input_tokens
        made = need.output_tokens if used.output_tokens is None else used.output_tokens
        prepared.record.settled_tokens = read - used.cached_tokens + made
        self.gate.settle(
            prepared.reservation,
            used.input_tokens,
            made,
            self._now(),
            cached_tokens=used.cached_tokens,
            served=used.served,
        )

    async def _recalled(self, need: Need, refusal: Outcome, recall: Recall) -> Outcome:
        """The outcome once control was asked, one caller at a time: a storm of refused requests
        must not become a storm of calls to control."""
        try:
            async with asyncio.timeout(RECALL_WAIT_S), self._recalling:
                outcome = self.gate.reserve(need, self._now())
                if not isinstance(outcome, Refusal):
                    return outcome
                reply = await recall(self.gate.brief_report(self._now()))
                if reply is not None and reply.again:
                    # A new ingress, or a new control: it first had to learn the epoch.
                    self.gate.take(reply, self._now())
                    reply = await recall(self.gate.brief_report(self._now()))
        except TimeoutError:
            return refusal
        if reply is None:
            return refusal
        self.gate.take(reply, self._now())
        return self.gate.reserve(need, self._now())

    def _headers(self, need: Need) -> dict[str, str]:
        return dict(self.gate.headers(need.tenant, need.model_class, self._now()))
