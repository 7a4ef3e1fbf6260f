"""Requests that no user waits for: a copy of somebody's, or a question to a judge.

They take only what nobody else wants: the lowest band, a slot that is free now, no quota, no
retry. They have books of their own, which no usage and no metric of users is read from.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from modelyard.config.routes import Route
from modelyard.contract.envelope import Answer, Item
from modelyard.contract.errors import DeadlineExceeded, Overloaded, ReplicaFailed
from modelyard.ingress.books import Books
from modelyard.ingress.pipeline import Pipeline
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.transport import Transport
from modelyard.ingress.turnstile import expired
from modelyard.routing.lanes import lane_of
from modelyard.routing.resolve import Target
from modelyard.telemetry.request_log import RequestRecord
from modelyard.tenancy.callers import Caller
from modelyard.tenancy.claim import Claim, sign

SHADOW: Final = "shadow"  # the band, and the arm of a copy


class ShadowCalls:
    """One per ingress process."""

    def __init__(
        self,
        pipeline: Pipeline,
        transport: Transport,
        secret: bytes,
        write_log: Callable[[RequestRecord], None],
    ) -> None:
        """write_log: of the request log alone: what counts usage must not see these."""
        self._pipeline = pipeline
        self._transport = transport
        self._secret = secret
        self._books = Books(write_log, pipeline.now, _nothing_to_settle)

    def caller(self, claim: Claim) -> Caller:
        """Somebody's claim in the lowest band: residency, cells and cache stay its tenant's."""
        lowered = replace(claim, priority=SHADOW)
        return Caller(lowered, sign(lowered, self._secret), frozenset(lowered.roles))

    def record(self, claim: Claim, request_id: str, route: str, purpose: str) -> RequestRecord:
        record = self._books.note(route, request_id, purpose)
        record.called_by(claim)
        return record

    def has_room(self, prepared: Prepared) -> bool:
        """Whether a slot is free and nobody waits for one."""
        lane = lane_of_target(prepared.target, prepared.caller.claim.tenant)
        queue = self._pipeline.turnstile.lanes.queue(lane)
        return not queue.waiting and queue.in_flight < queue.share

    def somebody_waits(self, *lanes: str) -> bool:
        return any(self._pipeline.turnstile.lanes.queue(lane).waiting for lane in lanes)

    async def answer(self, prepared: Prepared, heard: Callable[[Item], None]) -> None:
        """Send a request, and tell `heard` of each item of its answer.

        Raises Overloaded at once when no slot is free, before any books are opened, and
        RequestError for what becomes of it; `prepared.record` is then closed.
        """
        if not self.has_room(prepared):
            raise Overloaded("no slot is free for what no user waits for", reason="no_room")
        turnstile = self._pipeline.turnstile
        try:
            with self._books.settling(prepared):
                await turnstile.enter(prepared)  # at once: nothing has run since the look above
                await self._relay(prepared, heard)
                self._books.settle(prepared, 200, "ok")
        finally:
            turnstile.leave(prepared)

    async def _relay(self, prepared: Prepared, heard: Callable[[Item], None]) -> None:
        pipeline = self._pipeline
        prepared.record.attempt = 1
        budget_ms = int(prepared.left_s(pipeline.now()) * 1000)
        if budget_ms <= 0:
            raise expired()
        envelope = replace(prepared.envelope, budget_ms=budget_ms)
        cell = pipeline.router.cell(prepared)
        with pipeline.router.in_flight.at(cell):
            if not prepared.work.stream:
                answer = await self._in_time(prepared, self._transport.call(cell, envelope))
                item = self._books.take(prepared, answer)
                heard(item)
                if item.final is None:
                    raise _incomplete()
                return
            async with aclosing(self._transport.stream(cell, envelope)) as answers:
                await self._stream(prepared, answers, heard)

    async def _stream(
        self,
        prepared: Prepared,
        answers: AsyncGenerator[Answer],
        heard: Callable[[Item], None],
    ) -> None:
        while True:
            try:
                answer = await self._in_time(prepared, anext(answers))
            except StopAsyncIteration as error:
                raise _incomplete() from error
            item = self._books.take(prepared, answer)
            heard(item)
            if item.final is not None:
                return

    async def _in_time(self, prepared: Prepared, answer: Awaitable[Answer]) -> Answer:
        """Under the deadlines of a user's request: of a stream each item has its own."""
        now = self._pipeline.now()
        if prepared.work.stream:
            which, limit_s = prepared.item_limit(now)
        else:
            which, limit_s = "total", prepared.left_s(now)
        try:
            async with asyncio.timeout(limit_s):
                return await answer
        except TimeoutError as error:
            raise DeadlineExceeded(f"the {which} deadline passed", reason=which) from error


def lane_of_target(target: Target, tenant: str) -> str:
    return lane_of(target.version, tenant, target.route)


def plain_route(route: Route) -> Route:
    """A route without what overload does for users: no fallback that would answer in its place, and
    no order by lengths, which would learn from answers that no user got."""
    overload = route.overload.model_copy(update={"fallback": None, "order": "deadline"})
    return route.model_copy(update={"overload": overload})


def _incomplete() -> ReplicaFailed:
    return ReplicaFailed("the replica ended its answer early", reason="incomplete")


def _nothing_to_settle(prepared: Prepared) -> None:
    """It has no quota."""
