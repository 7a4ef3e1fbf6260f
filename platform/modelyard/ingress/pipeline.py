"""The data path: authenticate, resolve, validate, dispatch, relay, settle.

Knows neither HTTP nor Ray, so that data jobs take the same path by handle, and tests drive all of
it with a transport of their own. Quota and admission enter between `prepare` and `dispatch`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, closing
from dataclasses import replace
from typing import Any, Final

from modelyard.config.frozen import Role
from modelyard.config.table import Table
from modelyard.contract.answer_id import AnswerId, mint
from modelyard.contract.envelope import Answer, Envelope, Item
from modelyard.contract.errors import (
    DeadlineExceeded,
    Overloaded,
    ReplicaDied,
    ReplicaFailed,
    RequestError,
)
from modelyard.contract.headers import plain_names
from modelyard.ingress.attempts import Attempts
from modelyard.ingress.books import Books
from modelyard.ingress.prepared import Ask, Prepared
from modelyard.ingress.transport import Transport
from modelyard.ingress.work import alias_of, deadline_s, lowered, make_work
from modelyard.lazy_timeout import LazyTimeout
from modelyard.routing.conversation import conversation_key
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Cell
from modelyard.routing.resolve import Target, not_loaded, resolve
from modelyard.telemetry.request_log import RequestRecord
from modelyard.tenancy.authenticator import Authenticator, Caller

log = logging.getLogger("modelyard.ingress")

CLIENT_GONE: Final = 499  # nginx's status for a client that left; never sent, only logged


class Pipeline:
    """One per ingress process. `adopt` replaces the table; requests under way keep the old one."""

    def __init__(
        self,
        secret: bytes,
        transport: Transport,
        fleet: Fleet,
        write_log: Callable[[RequestRecord], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secret = secret
        self._transport = transport
        self._now = now
        self.books = Books(write_log, now)
        self.fleet = fleet
        self.attempts = Attempts(fleet, now)
        self.table: Table | None = None
        self._authenticator: Authenticator

    def adopt(self, table: Table) -> None:
        self._authenticator = Authenticator(table, self._secret)
        self.table = table

    def the_table(self) -> Table:
        """The table in force. Raises Overloaded before the first one arrived."""
        if self.table is None:
            raise Overloaded("this ingress has no table yet", reason="starting", retry_after_s=1)
        return self.table

    @property
    def max_body_bytes(self) -> int:
        return self.the_table().max_body_bytes

    def now(self) -> float:
        return self._now()

    def authenticate(self, ask: Ask, record: RequestRecord) -> Caller:
        """Before the body is read: a stranger costs no memory. Raises RequestError."""
        caller = self.require_key(ask.authorization, "invoke")
        record.tenant, record.key_id = caller.claim.tenant, caller.claim.key_id
        record.tier = caller.claim.tier
        return caller

    def require_key(self, authorization: str | None, role: Role) -> Caller:
        self.the_table()
        return self._authenticator.authenticate(authorization, role)

    def prepare(
        self, ask: Ask, caller: Caller, body: dict[str, Any], record: RequestRecord
    ) -> Prepared:
        """Everything else that can be refused without a replica. Raises RequestError."""
        table = self.the_table()
        alias = record.model = alias_of(body)
        target = resolve(alias, ask.operation, caller, table, self.fleet)
        record.version, record.arm = target.version, target.arm
        work = make_work(ask.operation, body, target.route.limits, target.description)
        record.stream, record.ignored_fields = work.stream, plain_names(work.ignored)
        own_s = deadline_s(work, ask.headers)
        deadlines = lowered(target.route.deadlines, own_s)
        record.conversation = conversation_key(
            ask.operation, body, ask.headers, caller.claim.tenant
        )
        record.answer_id = self._mint(target, caller.claim.tenant)
        envelope = Envelope(
            claim=caller.token,
            version=target.version,
            operation=ask.operation,
            body=work.encoded,
            stream=work.stream,
            budget_ms=0,
            band=caller.claim.priority,
            request_id=ask.request_id,
            answer_id=record.answer_id,
            model_alias=alias,
            traceparent=record.traceparent,
        )
        prepared = Prepared(target, work, envelope, record, ask.started, deadlines)
        self.attempts.begin(target.version, prepared.digest)
        return prepared

    async def call(self, prepared: Prepared) -> Item:
        """A unary answer. Raises RequestError. Settles on every way out."""
        with self.books.settling(prepared):
            try:
                async with asyncio.timeout(prepared.left_s(self._now())):
                    answer = await self._answer(prepared)
            except TimeoutError as error:
                raise self._late("total", prepared) from error
            item = self.books.take(prepared, answer)
            if item.final is None:
                raise ReplicaFailed("the replica ended its answer early", reason="incomplete")
            self.books.settle(prepared, 200, "ok")
            return item

    async def stream(self, prepared: Prepared) -> AsyncGenerator[Item]:
        """The items of a streamed answer; the last one carries `final`. Raises RequestError.

        Three deadlines run: to the first item, between items, and in all. Closing it cancels the
        replica's work. The first item is awaited like every other: the carrier decides when it has
        waited long enough to send its status.
        """
        with self.books.settling(prepared), closing(LazyTimeout()) as waiting:
            async with aclosing(self._answers(prepared)) as answers:
                while True:
                    item = self.books.take(prepared, await self._next(prepared, answers, waiting))
                    if item.final is not None:
                        # Before it is sent: a client that leaves on the last byte was served.
                        self.books.settle(prepared, 200, "ok")
                    yield item
                    if item.final is not None:
                        return

    async def _answer(self, prepared: Prepared) -> Answer:
        """A unary call, sent once more when its replica dies."""
        while True:
            envelope = self._dispatched(prepared)
            try:
                return await self._transport.call(self._cell(prepared), envelope)
            except ReplicaDied as error:
                self._after_death(error, prepared)

    async def _answers(self, prepared: Prepared) -> AsyncGenerator[Answer]:
        """A stream's answers, sent once more when its replica dies before the first of them."""
        while True:
            envelope = self._dispatched(prepared)
            stream = self._transport.stream(self._cell(prepared), envelope)
            try:
                async with aclosing(stream) as answers:
                    async for answer in answers:
                        yield answer
                return
            except ReplicaDied as error:
                self._after_death(error, prepared)

    def _after_death(self, error: ReplicaDied, prepared: Prepared) -> None:
        """Return when the request may go to another replica; raises what its caller is told."""
        record = prepared.record
        wait_s: float | None = prepared.left_s(self._now())
        if record.ttft_ms is not None:
            wait_s = None
        elif prepared.work.stream:
            wait_s = min(prepared.left_s(self._now()), prepared.first_token_left_s(self._now()))
        self.attempts.after_death(
            error, prepared.target.version, record.attempt, wait_s, prepared.digest()
        )
        log.warning(
            "request %s is sent again: a replica of %s died", record.request_id, record.version
        )

    async def _next(
        self, prepared: Prepared, answers: AsyncGenerator[Answer], waiting: LazyTimeout
    ) -> Answer:
        which, limit_s = prepared.item_limit(self._now())
        try:
            with waiting.within(limit_s):
                return await anext(answers)
        except TimeoutError as error:
            raise self._late(which, prepared) from error
        except StopAsyncIteration as error:
            raise ReplicaFailed(
                "the replica ended its answer early", reason="incomplete"
            ) from error

    def _dispatched(self, prepared: Prepared) -> Envelope:
        prepared.record.attempt += 1
        prepared.none_ready = not self.fleet.pool(prepared.target.version).is_ready
        budget_ms = int(prepared.left_s(self._now()) * 1000)
        if budget_ms <= 0:
            raise DeadlineExceeded(
                "the deadline passed before the model began", reason="expired", retryable=True
            )
        return replace(prepared.envelope, budget_ms=budget_ms, attempt=prepared.record.attempt)

    def _late(self, which: str, prepared: Prepared) -> RequestError:
        """A deadline that passed; or, when no replica was left to begin, that the model is away."""
        record, version = prepared.record, prepared.target.version
        # A whole answer shows nothing until it is there: a model may have worked on it all along.
        unseen = prepared.work.stream or record.attempt > 1 or prepared.none_ready
        began = record.ttft_ms is not None
        if not began and unseen and not self.fleet.pool(version).is_ready:
            return not_loaded(prepared.target.alias, version, self.fleet)
        limit_s: float = getattr(prepared.deadlines, f"{which}_s")
        return DeadlineExceeded(f"the {which} deadline of {limit_s:g} s passed", reason=which)

    def _cell(self, prepared: Prepared) -> Cell:
        """The first cell, and for the second attempt the next: inside a cell Serve itself keeps
        away from a replica that died."""
        cells = prepared.target.pool.cells
        return cells[(prepared.record.attempt - 1) % len(cells)]

    def _mint(self, target: Target, tenant: str) -> str:
        answer = AnswerId(
            target.version, target.arm, target.rollout, int(time.time()), random.randbytes(6)
        )
        return mint(answer, tenant, self._secret)
