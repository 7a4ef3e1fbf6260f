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

RECALL_WAIT_S: Final = 0.25

Recall = Callable[[HolderReport], Awaitable[SplitReply | None]]


class Metering:
    """One per ingress process. `recall` asks control, which gathers what others do not need."""

    def __init__(self, ingress: str, now: Callable[[], float]) -> None:
        self._now = now
        self._recalling = asyncio.Lock()
        self._waiting: list[Need] = []
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
        if isinstance(outcome, Refusal):
            prepared.record.would_refuse = f"quota_{outcome.direction}"
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
        """The outcome once control was asked.

        One call at a time, for all that wait: eight requests at once must not be eight calls in a
        row. Where all of it is not to be had, the one at hand asks for itself.
        """
        self._waiting.append(need)
        outcome = refusal
        try:
            async with asyncio.timeout(RECALL_WAIT_S), self._recalling:
                for wanted in (list(self._waiting), [need]):
                    outcome = self.gate.reserve(need, self._now())
                    if not isinstance(outcome, Refusal):
                        return outcome
                    await self._ask(wanted, recall)
                outcome = self.gate.reserve(need, self._now())
        except TimeoutError:
            pass
        finally:
            self._waiting.remove(need)
        if isinstance(outcome, Refusal):
            self.gate.recalled_in_vain(outcome, self._now())
        return outcome

    async def _ask(self, needs: list[Need], recall: Recall) -> None:
        """One recall; a second where a new ingress, or a new control, first learns the epoch."""
        for _ in range(2):
            now = self._now()
            self.gate.want(needs, now)
            reply = await recall(self.gate.brief_report(now))
            if reply is None:
                return
            self.gate.take(reply, self._now())
            if not reply.again:
                return

    def _headers(self, need: Need) -> dict[str, str]:
        return dict(self.gate.headers(need.tenant, need.model_class, self._now()))
