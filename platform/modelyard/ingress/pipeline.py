"""The data path: authenticate, resolve, validate, reserve, dispatch, relay, settle.

Knows neither HTTP nor Ray, so that data jobs take the same path by handle, and tests drive all of
it with a transport of their own.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from dataclasses import replace
from typing import Any

from modelyard.config.frozen import Role
from modelyard.config.table import Table
from modelyard.contract.answer_id import AnswerId, read
from modelyard.contract.envelope import Answer, Envelope, Failure, Item
from modelyard.contract.errors import (
    DeadlineExceeded,
    Overloaded,
    ReplicaDied,
    ReplicaFailed,
    RequestError,
)
from modelyard.control.in_force import InForce
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import Published
from modelyard.control.reading import Reading
from modelyard.ingress.admitter import Admitter
from modelyard.ingress.answer_tap import AnswerObserver, taps_of
from modelyard.ingress.attempts import MAX_ATTEMPTS, Attempts
from modelyard.ingress.books import Books
from modelyard.ingress.demand import Demand
from modelyard.ingress.metering import Metering
from modelyard.ingress.outcomes import Outcomes
from modelyard.ingress.prepared import Ask, Prepared
from modelyard.ingress.preparer import Preparer
from modelyard.ingress.router import Router
from modelyard.ingress.transport import Transport
from modelyard.ingress.turnstile import Turnstile, expired
from modelyard.lazy_timeout import LazyTimeout
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Cell
from modelyard.telemetry.request_log import RequestRecord
from modelyard.telemetry.request_observer import RequestObserver
from modelyard.tenancy.authenticator import Authenticator, Caller
from modelyard.tenancy.signing_keys import JwksSource

log = logging.getLogger("modelyard.ingress")


class Pipeline:
    """One per ingress process. `adopt` replaces the table; requests under way keep the old one."""

    def __init__(
        self,
        secret: bytes,
        transport: Transport,
        fleet: Fleet,
        write_log: Callable[[RequestRecord], None],
        now: Callable[[], float] = time.monotonic,
        observer: RequestObserver | None = None,
        *,
        ingress: str = "ingress",
        signing_keys: JwksSource | None = None,
    ) -> None:
        """ingress: unique to this process. signing_keys: of those who issue tokens."""
        self._secret = secret
        self._transport = transport
        self._now = now
        self._signing_keys = signing_keys
        self.ingress = ingress
        self.fleet = fleet
        self.in_force = InForce(now)
        self.demand = Demand(now)
        self.router = Router(fleet, self.in_force, self.demand, random.Random())
        self.metering = Metering(ingress, now)
        self.turnstile = Turnstile(ingress, fleet, now, random.Random())
        self.books = Books(write_log, now, self.metering.settle, observer)
        self.attempts = Attempts(fleet, now)
        self.outcomes = Outcomes(random.Random(), now())
        self.observers: tuple[AnswerObserver, ...] = ()  # who listens to answers, besides callers
        self._preparer = Preparer(secret, self.router, self.metering.gate)
        self._admitter = Admitter(
            self.metering,
            self.turnstile,
            self.attempts,
            self.router,
            self._preparer,
            self.demand,
        )
        self.table: Table | None = None
        self.table_error = ""
        self._table_digest = ""
        self._limits: frozenset[tuple[str, float | None]] = frozenset()
        self._authenticator: Authenticator

    def adopt(self, table: Table) -> None:
        if self._signing_keys is not None:
            self._signing_keys.follow(table.issuers)
        self._authenticator = Authenticator(
            table,
            self._secret,
            signing_keys=self._signing_keys,
            revoked=self.in_force.revoked,
        )
        self.table, self._table_digest, self.table_error = table, table.digest(), ""
        self.metering.gate.adopt(table.quotas, self.in_force.overrides)
        self.turnstile.adopt(table)
        self.demand.swapped = table.swapped

    def refuse_table(self, error: str) -> None:
        """The last good table stays in force; the board learns what was wrong with this one."""
        self.table_error = error

    def post(self) -> IngressPost:
        """What this process tells the board."""
        return IngressPost(
            ingress=self.ingress,
            table_digest=self._table_digest,
            table_valid=not self.table_error,
            table_error=self.table_error,
            in_flight=self.demand.in_flight,
            waiting=self.turnstile.lanes.waiting,
            running=self.turnstile.lanes.running,
            wishes=self.demand.wishes,
            word=self.in_force.to_tell,
            order=self.in_force.order,
        )

    def take(self, reading: Reading) -> None:
        """The board's reading: who is there, who wants what, and control's last word."""
        self.fleet.update(reading.posts)
        self.turnstile.take(reading.ingresses)
        self.obey(reading.published)

    def obey(self, word: Published | None) -> None:
        """Control's word, by whichever way it comes."""
        if self.in_force.take(word) and self.table is not None:
            self._authenticator.revoke(self.in_force.revoked)
            self.turnstile.recall(self.router.is_closed)

    def refresh(self) -> None:
        """What changes with time alone, board or no board: an override's limit ends with it."""
        limits = frozenset(
            (one.target, one.value)
            for one in self.in_force.overrides
            if one.kind == "limit" and one.of_route is None
        )
        if limits != self._limits and self.table is not None:
            self.metering.gate.adopt(self.table.quotas, self.in_force.overrides)
            self._limits = limits
        self.turnstile.refresh(self.in_force.route_limits)

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

    async def authenticate(self, ask: Ask, record: RequestRecord) -> Caller:
        """Before the body is read: a stranger costs no memory. Raises RequestError."""
        caller = await self.admit(ask.authorization, record)
        record.enter("read_body")
        return caller

    async def admit(self, authorization: str | None, record: RequestRecord) -> Caller:
        """Whoever may call models. Raises RequestError."""
        self.the_table()
        caller = await self._authenticator.admit(authorization, "invoke")
        record.called_by(caller.claim)
        return caller

    def answer_of(self, text: str, tenant: str) -> AnswerId:
        """What the id of an answer says. Raises InvalidRequest for another tenant's and a forged
        one."""
        return read(text, tenant, self._secret)

    def require_key(self, authorization: str | None, role: Role) -> Caller:
        self.the_table()
        return self._authenticator.authenticate(authorization, role)

    def prepare(
        self, ask: Ask, caller: Caller, body: dict[str, Any], record: RequestRecord
    ) -> Prepared:
        """Everything else that can be refused without a replica. Raises RequestError."""
        record.enter("resolve")
        prepared = self._preparer.prepare(ask, caller, body, record, self.the_table())
        self.attempts.begin(prepared.target.version, prepared.digest)
        return prepared

    def _turned(self, answer: Answer, prepared: Prepared) -> bool:
        """Whether a replica refused for want of a feature that the other arm has; it is then the
        target. Nothing has been made, and the request is not sent a third time."""
        record = prepared.record
        if not isinstance(answer, Failure) or record.ttft_ms is not None:
            return False
        if record.attempt >= MAX_ATTEMPTS or prepared.status_sent:
            return False
        other = self.router.other(prepared.target, answer, prepared.caller, self.the_table())
        if other is None:
            return False
        self.demand.moved(prepared.target.version, other.version)
        self.outcomes.add_turned(record, answer.code)
        self._preparer.turn(prepared, other, answer)
        self.turnstile.turn(prepared)
        return True

    async def call(self, prepared: Prepared) -> Item:
        """A unary answer. Raises RequestError. Settles on every way out."""
        with self._under_way(prepared):
            await self._admitter.let_in(prepared, self.the_table())
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
        with self._under_way(prepared), closing(LazyTimeout()) as waiting:
            await self._admitter.let_in(prepared, self.the_table())
            async with aclosing(self._answers(prepared)) as answers:
                while True:
                    item = self.books.take(prepared, await self._next(prepared, answers, waiting))
                    if item.final is not None:
                        # Before it is sent: a client that leaves on the last byte was served, and
                        # one that reads it slowly keeps no slot from others.
                        self.books.settle(prepared, 200, "ok")
                        self.turnstile.leave(prepared)
                    yield item
                    if item.final is not None:
                        return

    @contextmanager
    def _under_way(self, prepared: Prepared) -> Iterator[None]:
        try:
            with (
                self.books.settling(prepared),
                self.demand.under_way(lambda: prepared.target.version),
            ):
                yield
        finally:  # after the books, which say how it ended
            self.turnstile.leave(prepared)

    async def _answer(self, prepared: Prepared) -> Answer:
        """A unary call, sent once more when its replica dies, or when only the other arm can."""
        while True:
            envelope, cell = self._dispatched(prepared)
            try:
                with self.router.in_flight.at(cell):
                    answer = await self._transport.call(cell, envelope)
            except ReplicaDied as error:
                self._after_death(error, prepared)
            else:
                if not self._turned(answer, prepared):
                    return answer

    async def _answers(self, prepared: Prepared) -> AsyncGenerator[Answer]:
        """A stream's answers, sent once more as a unary call is, before the first of them."""
        while True:
            envelope, cell = self._dispatched(prepared)
            stream = self._transport.stream(cell, envelope)
            try:
                with self.router.in_flight.at(cell):
                    async with aclosing(stream) as answers:
                        async for answer in answers:
                            if self._turned(answer, prepared):
                                break
                            yield answer
                        else:
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
        if not prepared.status_sent and self.router.is_closed(prepared):
            self._admitter.recall(prepared, self.the_table())
            self.turnstile.turn(prepared)

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

    def _dispatched(self, prepared: Prepared) -> tuple[Envelope, Cell]:
        prepared.record.attempt += 1
        prepared.record.enter("dispatch")
        prepared.none_ready = not self.fleet.pool(prepared.target.version).is_ready
        budget_ms = int(prepared.left_s(self._now()) * 1000)
        if budget_ms <= 0:
            raise expired()
        if self.observers and prepared.record.attempt == 1:
            prepared.taps = taps_of(self.observers, prepared)
        envelope = replace(prepared.envelope, budget_ms=budget_ms, attempt=prepared.record.attempt)
        return envelope, self.router.cell(prepared)

    def _late(self, which: str, prepared: Prepared) -> RequestError:
        """A deadline that passed; or, when no replica was left to begin, that the model is away."""
        record = prepared.record
        # A whole answer shows nothing until it is there: a model may have worked on it all along.
        unseen = prepared.work.stream or record.attempt > 1 or prepared.none_ready
        began = record.ttft_ms is not None
        if not began and unseen and (away := self.router.away(prepared)) is not None:
            return away
        limit_s: float = getattr(prepared.deadlines, f"{which}_s")
        return DeadlineExceeded(f"the {which} deadline of {limit_s:g} s passed", reason=which)
