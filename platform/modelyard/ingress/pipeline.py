"""The data path: authenticate, resolve, validate, dispatch, relay, settle.

Knows neither HTTP nor Ray, so that data jobs take the same path by handle, and tests drive all of
it with a transport of their own. Quota and admission enter between `prepare` and `dispatch`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from modelyard.admission.suspects import digest_of
from modelyard.config.frozen import Role
from modelyard.config.routes import Deadlines
from modelyard.config.table import Table
from modelyard.contract.answer_id import AnswerId, mint
from modelyard.contract.envelope import Answer, Envelope, Failure, Item
from modelyard.contract.errors import (
    DeadlineExceeded,
    Internal,
    Overloaded,
    ReplicaDied,
    ReplicaFailed,
    RequestError,
    from_failure,
)
from modelyard.contract.headers import plain_names, traceparent_of
from modelyard.contract.operations import Operation
from modelyard.ingress.attempts import Attempts
from modelyard.ingress.transport import Transport
from modelyard.ingress.work import Work, alias_of, deadline_s, lowered, make_work
from modelyard.lazy_timeout import LazyTimeout
from modelyard.routing.conversation import conversation_key
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Cell
from modelyard.routing.resolve import Target, not_loaded, resolve
from modelyard.telemetry.request_log import RequestRecord
from modelyard.tenancy.authenticator import Authenticator, Caller

log = logging.getLogger("modelyard.ingress")

CLIENT_GONE: Final = 499  # nginx's status for a client that left; never sent, only logged


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as its carrier (HTTP or a handle) delivers it."""

    operation: Operation
    route: str
    authorization: str | None
    headers: Mapping[str, str]
    request_id: str
    started: float


@dataclass(slots=True)
class Prepared:
    """A request that may be dispatched, and the record of what becomes of it."""

    target: Target
    work: Work
    envelope: Envelope
    record: RequestRecord
    started: float
    deadlines: Deadlines
    settled: bool = field(default=False)
    none_ready: bool = field(default=False)  # when it was last sent: it then waits for a replica

    def digest(self) -> str:
        return digest_of(self.envelope, self.record.tenant)


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
        self._write_log = write_log
        self._now = now
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

    def open_record(self, ask: Ask) -> RequestRecord:
        return RequestRecord(
            ts=datetime.now(UTC).isoformat(timespec="milliseconds"),
            request_id=ask.request_id,
            route=ask.route,
            traceparent=traceparent_of(ask.headers),
        )

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
        with self._settling(prepared):
            try:
                async with asyncio.timeout(self._left_s(prepared)):
                    answer = await self._answer(prepared)
            except TimeoutError as error:
                raise self._late("total", prepared) from error
            item = self._take(prepared, answer)
            if item.final is None:
                raise ReplicaFailed("the replica ended its answer early", reason="incomplete")
            self.settle(prepared, 200, "ok")
            return item

    async def stream(self, prepared: Prepared) -> AsyncGenerator[Item]:
        """The items of a streamed answer; the last one carries `final`. Raises RequestError.

        Three deadlines run: to the first item, between items, and in all. Closing it cancels the
        replica's work. The first item is awaited like every other: the carrier decides when it has
        waited long enough to send its status.
        """
        with self._settling(prepared), closing(LazyTimeout()) as waiting:
            async with aclosing(self._answers(prepared)) as answers:
                while True:
                    item = self._take(prepared, await self._next(prepared, answers, waiting))
                    if item.final is not None:
                        # Before it is sent: a client that leaves on the last byte was served.
                        self.settle(prepared, 200, "ok")
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
        wait_s: float | None = self._left_s(prepared)
        if record.ttft_ms is not None:
            wait_s = None
        elif prepared.work.stream:
            wait_s = min(self._left_s(prepared), self._first_token_left_s(prepared))
        self.attempts.after_death(
            error, prepared.target.version, record.attempt, wait_s, prepared.digest()
        )
        log.warning(
            "request %s is sent again: a replica of %s died", record.request_id, record.version
        )

    @contextmanager
    def _settling(self, prepared: Prepared) -> Iterator[None]:
        """Whatever leaves the body closes the books, and is a RequestError or a cancellation."""
        try:
            yield
        except RequestError as error:
            self.settle(prepared, error.status, error.code, error.reason)
            raise
        except Exception as error:
            raise self._bug(prepared) from error
        except BaseException:
            self.settle(prepared, CLIENT_GONE, "cancelled", "client_gone")
            raise

    async def _next(
        self, prepared: Prepared, answers: AsyncGenerator[Answer], waiting: LazyTimeout
    ) -> Answer:
        if prepared.record.ttft_ms is None:
            which, limit_s = "first_token", self._first_token_left_s(prepared)
        else:
            which, limit_s = "idle", prepared.deadlines.idle_s
        left_s = self._left_s(prepared)
        if left_s < limit_s:
            which, limit_s = "total", left_s
        try:
            with waiting.within(limit_s):
                return await anext(answers)
        except TimeoutError as error:
            raise self._late(which, prepared) from error
        except StopAsyncIteration as error:
            raise ReplicaFailed(
                "the replica ended its answer early", reason="incomplete"
            ) from error

    def settle(self, prepared: Prepared, status: int, code: str, reason: str = "") -> None:
        """Close the books on a request, once, whatever way it ended."""
        if prepared.settled:
            return
        prepared.settled = True
        self.close_record(prepared.record, prepared.started, status, code, reason)

    def close_record(
        self, record: RequestRecord, started: float, status: int, code: str, reason: str = ""
    ) -> None:
        record.status, record.code = status, code
        record.reason = reason if reason != code else ""
        record.duration_ms = round((self._now() - started) * 1000, 3)
        self._write_log(record)

    def _take(self, prepared: Prepared, answer: Answer) -> Item:
        """Count an item, or raise what a Failure says."""
        if isinstance(answer, Failure):
            raise from_failure(answer)
        record = prepared.record
        if record.ttft_ms is None:
            record.ttft_ms = round((self._now() - prepared.started) * 1000, 3)
        record.output_tokens += answer.output_tokens
        if answer.final is not None:
            record.input_tokens = answer.final.input_tokens
            record.output_tokens = answer.final.output_tokens
            record.cached_tokens = answer.final.cached_tokens
            record.finish_reason = answer.final.finish_reason
        return answer

    def _bug(self, prepared: Prepared) -> RequestError:
        """For an exception nobody foresaw: logged here, and nothing of it leaks."""
        request_id = prepared.record.request_id
        log.exception("request %s failed", request_id)
        self.settle(prepared, 500, "internal")
        return Internal(f"an internal error, logged under the request id {request_id}")

    def _dispatched(self, prepared: Prepared) -> Envelope:
        prepared.record.attempt += 1
        prepared.none_ready = not self.fleet.pool(prepared.target.version).is_ready
        budget_ms = int(self._left_s(prepared) * 1000)
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

    def _first_token_left_s(self, prepared: Prepared) -> float:
        return prepared.started + prepared.deadlines.first_token_s - self._now()

    def _left_s(self, prepared: Prepared) -> float:
        return prepared.started + prepared.deadlines.total_s - self._now()

    def _mint(self, target: Target, tenant: str) -> str:
        answer = AnswerId(
            target.version, target.arm, target.rollout, int(time.time()), random.randbytes(6)
        )
        return mint(answer, tenant, self._secret)
