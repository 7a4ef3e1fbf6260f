"""The admission queue on the data path: who starts now, who waits, who is told to come back.

The policy is modelyard.admission, which neither waits nor looks at a clock. Here are the futures of
those that wait, and one timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from random import Random

from modelyard.admission.outcome import Refused, Waiting
from modelyard.admission.predict import LengthPredictor
from modelyard.admission.ticket import Ticket
from modelyard.admission.version_queue import VersionQueue
from modelyard.config.table import Table
from modelyard.contract.errors import DeadlineExceeded, Overloaded
from modelyard.control.published import RouteLimit
from modelyard.control.reading import IngressEntry
from modelyard.ingress.lanes import Lanes
from modelyard.ingress.place import Place
from modelyard.ingress.prepared import Prepared
from modelyard.routing.fleet import Fleet
from modelyard.routing.lanes import lane_of


class Recalled(Exception):
    """Raised out of a wait: the request may not start where it waits, and asks elsewhere."""


class Turnstile:
    """One per ingress process. A slot is held from release until the request ends, over a retry
    too."""

    def __init__(self, ingress: str, fleet: Fleet, now: Callable[[], float], rng: Random) -> None:
        self._now = now
        self._rng = rng
        self._table: Table | None = None
        self._limits: Mapping[RouteLimit, int] = {}
        self._waiters: dict[int, asyncio.Future[None]] = {}
        self._waiting: dict[int, Prepared] = {}
        self._number = 0
        self._timer: asyncio.TimerHandle | None = None
        self._predictor = LengthPredictor()
        self.lanes = Lanes(ingress, fleet, now)
        self.pressed = asyncio.Event()  # somebody began to wait: the others should hear of it

    def adopt(self, table: Table) -> None:
        self._table = table
        self.lanes.adopt(table)

    def take(self, entries: Iterable[IngressEntry]) -> None:
        """The board's reading: this ingress's shares may have changed."""
        self.lanes.take(entries)
        self._pump_all()

    def refresh(self, limits: Mapping[RouteLimit, int]) -> None:
        """What changes with time alone. limits: in force in place of the table's."""
        self._limits = limits
        if self.lanes.refresh():
            self._pump_all()

    def pressure(self, prepared: Prepared) -> float:
        """How full the queue of a request is, that has not entered yet: 0 to 1, or more."""
        queue = self.lanes.queue(_lane(prepared))
        return queue.pressure(self._ticket(prepared, self._now())) if queue.waiting else 0.0

    async def enter(self, prepared: Prepared) -> None:
        """Return with a slot, as `prepared.place`. Raises Overloaded, with Retry-After,
        DeadlineExceeded for a request that was too late before it came here, and Recalled."""
        now = self._now()
        lane = _lane(prepared)
        queue = self.lanes.queue(lane)
        ticket = self._ticket(prepared, now)
        if now >= ticket.deadline:
            raise expired()
        if queue.in_flight >= queue.share:
            self.lanes.divide(lane, queue, ticket.band)
        outcome = queue.offer(ticket, now, self._rng)
        if isinstance(outcome, Refused):
            raise _overloaded(outcome)
        if isinstance(outcome, Waiting):
            self._tell(outcome.evicted)
            prepared.record.enter("queue")
            try:
                await self._wait(queue, ticket, prepared)
            finally:
                waited_ms = (self._now() - now) * 1000
                prepared.record.queued_ms = round((prepared.record.queued_ms or 0) + waited_ms, 3)
        prepared.place = Place(lane, ticket, self._now())

    def leave(self, prepared: Prepared) -> None:
        """Give the slot back, and let the next ones start. Without a place nothing happens."""
        place, prepared.place = prepared.place, None
        if place is None:
            return
        if prepared.record.finish_reason and _by_length(prepared):
            self._predictor.learn(*_about(prepared), prepared.record.output_tokens)
        ttft_ms = prepared.record.ttft_ms
        first_at = None if ttft_ms is None else prepared.started + ttft_ms / 1000
        queue = self.lanes.queue(place.lane)
        cut = prepared.record.status >= 400  # its caller left, its time was up, or it failed
        queue.finished(place.ticket, self._now(), place.started, first_at, cut=cut)
        self._pump(queue)

    def turn(self, prepared: Prepared) -> None:
        """Change a slot for one of the version that the request now goes to: nothing was made yet,
        and a request that was let in does not wait a second time."""
        assert prepared.place is not None
        old, lane = prepared.place, _lane(prepared)
        self.lanes.queue(lane).take(old.ticket)
        prepared.place = Place(lane, old.ticket, self._now())
        queue = self.lanes.queue(old.lane)
        queue.give_back(old.ticket)
        self._pump(queue)

    def recall(self, is_closed: Callable[[Prepared], bool]) -> None:
        """Send away those that wait for what has been closed to them. One whose status has gone
        out stays: no other version may answer it."""
        for number, prepared in self._waiting.items():
            waiter = self._waiters[number]
            if not waiter.done() and not prepared.status_sent and is_closed(prepared):
                waiter.set_exception(Recalled())

    async def _wait(self, queue: VersionQueue, ticket: Ticket, prepared: Prepared) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[ticket.id], self._waiting[ticket.id] = waiter, prepared
        self.pressed.set()
        self._watch()
        self._pump(queue)  # a share that has just grown is for all that wait, in their order
        try:
            await waiter
        except BaseException:
            # Refused, or its caller left: perhaps in the very moment in which it was let in.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                queue.give_back(ticket)
            else:
                queue.cancel(ticket)
            self._pump(queue)
            raise
        finally:
            del self._waiters[ticket.id], self._waiting[ticket.id]

    def _pump_all(self) -> None:
        for queue in self.lanes:
            self._pump(queue)

    def _pump(self, queue: VersionQueue) -> None:
        """Start those who may."""
        while started := queue.ready(self._now()):
            for ticket in started:
                waiter = self._waiters[ticket.id]
                if waiter.done():  # its caller left, and its task has not run since
                    queue.give_back(ticket)
                else:
                    waiter.set_result(None)

    def _watch(self) -> None:
        """Have the timer ring when the next of those that wait has waited too long.

        It is never set later: a ring for nobody costs less than a timer for each that waits.
        """
        due = [at for queue in self.lanes if (at := queue.next_expiry) is not None]
        if not due:
            return
        loop = asyncio.get_running_loop()
        when = loop.time() + max(0.0, min(due) - self._now())
        if self._timer is None or when < self._timer.when():
            if self._timer is not None:
                self._timer.cancel()
            self._timer = loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        for queue in self.lanes:
            self._tell(queue.expire(self._now(), self._rng))
        self._watch()

    def _tell(self, refused: Iterable[tuple[Ticket, Refused]]) -> None:
        """Those that waited in vain learn it."""
        for ticket, why in refused:
            waiter = self._waiters[ticket.id]
            if not waiter.done():
                waiter.set_exception(_overloaded(why))

    def _ticket(self, prepared: Prepared, now: float) -> Ticket:
        assert self._table is not None, "a request is let in under a table"
        claim, target, work = prepared.caller.claim, prepared.target, prepared.work
        deadlines, limits = prepared.deadlines, target.route.limits
        limit_s = deadlines.first_token_s if work.stream else deadlines.total_s
        self._number += 1
        return Ticket(
            id=self._number,
            band=claim.priority,
            tenant=claim.tenant,
            alias=target.alias,
            weight=self._table.weight_of(claim.tier),
            arrived=now,
            deadline=prepared.started + limit_s,
            length=self._predictor.predict(*_about(prepared)) if _by_length(prepared) else None,
            tokens=prepared.prompt_tokens + work.cap_tokens * work.choices,
            max_requests=self._limit(
                target.alias, "max_queued_requests", limits.max_queued_requests
            ),
            max_tokens=self._limit(target.alias, "max_queued_tokens", limits.max_queued_tokens),
            streams=work.stream,
            whole_by=prepared.started + deadlines.total_s if work.stream else None,
        )

    def _limit(self, alias: str, field: str, of_table: int | None) -> int | None:
        return self._limits.get(RouteLimit(alias, field), of_table) if self._limits else of_table


def expired() -> DeadlineExceeded:
    """Of a request that nobody began to work on."""
    return DeadlineExceeded(
        "the deadline passed before the model began", reason="expired", retryable=True
    )


def _by_length(prepared: Prepared) -> bool:
    return prepared.target.route.overload.order == "shortest" and prepared.work.cap_tokens > 0


def _about(prepared: Prepared) -> tuple[str, str, int, int]:
    """What the length of an answer is predicted from."""
    work = prepared.work
    tenant, alias = prepared.caller.claim.tenant, prepared.target.alias
    return tenant, alias, work.cap_tokens * work.choices, prepared.prompt_tokens


def _lane(prepared: Prepared) -> str:
    target = prepared.target
    return lane_of(target.version, prepared.caller.claim.tenant, target.route)


def _overloaded(refused: Refused) -> Overloaded:
    return Overloaded(refused.message, reason=refused.reason, retry_after_s=refused.retry_after_s)
