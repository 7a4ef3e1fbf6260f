"""An ingress with the production queue; what modelyard.ingress.turnstile does around it, again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import Final

from modelyard.admission.outcome import Admitted, Refused, Waiting
from modelyard.admission.predict import LengthPredictor
from modelyard.admission.ticket import Ticket
from modelyard.admission.version_queue import VersionQueue
from modelyard.simulate.agenda import Agenda, Event
from modelyard.simulate.lengths import Length
from modelyard.simulate.request import Caller, Request
from modelyard.simulate.slots import Slots

# Serve's router waits so long between two tries on a replica that is full (our settings).
BACKOFF_S: Final = (0.01, 0.02, 0.04)
ALIAS: Final = "model"
CAP_TOKENS: Final = 1024


class Learned:
    """The production predictor. by_prompt: whether it is told how long the prompt is."""

    def __init__(self, by_prompt: bool) -> None:
        self._by_prompt = by_prompt
        self._predictor = LengthPredictor()

    def predict(self, request: Request) -> float | None:
        length = request.length
        return self._predictor.predict(length.tenant, ALIAS, CAP_TOKENS, self._prompt(length))

    def learn(self, request: Request) -> None:
        length = request.length
        self._predictor.learn(
            length.tenant, ALIAS, CAP_TOKENS, self._prompt(length), length.output_tokens
        )

    def _prompt(self, length: Length) -> int:
        return length.prompt_tokens if self._by_prompt else 0


class QueuedIngress:
    """cut: cancel at the deadline what has a slot, as the pipeline does.

    A slot that the queue gives and the server has not (another ingress holds it yet) is tried again
    with the router's back-off. learned: predicts the lengths, in place of what requests bring.
    """

    def __init__(
        self,
        agenda: Agenda,
        slots: Slots,
        caller: Caller,
        queue: VersionQueue,
        rng: Random,
        *,
        cut: bool = False,
        learned: Learned | None = None,
    ) -> None:
        self.queue: Final = queue
        self.divide: Callable[[str], None] | None = None  # called before a band finds no slot
        self._agenda = agenda
        self._slots = slots
        self._caller = caller
        self._rng = rng
        self._cut = cut
        self._learned = learned
        self._requests: dict[int, Request] = {}
        self._number = 0
        self._timer: Event | None = None
        queue.set_share(slots.count, slots.count)

    def arrive(self, request: Request) -> None:
        now = self._agenda.now
        ticket = self._ticket(request)
        if self.divide is not None and self.queue.in_flight >= self.queue.share:
            self.divide(request.band)
        outcome = self.queue.offer(ticket, now, self._rng)
        if isinstance(outcome, Refused):
            self._refuse(request, outcome)
            return
        self._requests[ticket.id] = request
        if isinstance(outcome, Admitted):
            self._start(ticket)
            return
        assert isinstance(outcome, Waiting)
        self._tell(outcome.evicted)
        self.pump()  # a share that has just grown is for all that wait, in their order

    def _ticket(self, request: Request) -> Ticket:
        self._number += 1
        return Ticket(
            id=self._number,
            band=request.band,
            tenant=request.length.tenant,
            alias=ALIAS,
            weight=1.0,
            arrived=self._agenda.now,
            deadline=request.deadline,
            tokens=1,
            length=request.predicted if self._learned is None else self._learned.predict(request),
        )

    def pump(self) -> None:
        for ticket in self.queue.ready(self._agenda.now):
            self._start(ticket)
        self._watch()

    def _start(self, ticket: Ticket) -> None:
        self._run(ticket, self._agenda.now, 0)

    def _run(self, ticket: Ticket, given: float, tries: int) -> None:
        """given: when the queue gave the slot."""
        request, now = self._requests[ticket.id], self._agenda.now
        if self._cut and now >= request.deadline:
            self._ended(ticket, given, False)
        elif self._slots.start(
            request,
            partial(self._ended, ticket, given),
            until=request.deadline if self._cut else None,
        ):
            self._caller.started(request, now)
        else:
            pause_s = BACKOFF_S[min(tries, len(BACKOFF_S) - 1)]
            self._agenda.after(pause_s, partial(self._run, ticket, given, tries + 1))

    def _ended(self, ticket: Ticket, given: float, answered: bool) -> None:
        now = self._agenda.now
        request = self._requests.pop(ticket.id)
        self.queue.finished(ticket, now, given, now if answered else None)
        if answered:
            if self._learned is not None:
                self._learned.learn(request)
            self._caller.answered(request, now)
        else:
            self._caller.cut(request, now)
        self.pump()

    def _watch(self) -> None:
        due = self.queue.next_expiry
        if due is None or (self._timer is not None and self._timer.when <= due):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._agenda.at(due, self._ring)

    def _ring(self) -> None:
        self._timer = None
        self._tell(self.queue.expire(self._agenda.now, self._rng))
        self._watch()

    def _tell(self, gone: Iterable[tuple[Ticket, Refused]]) -> None:
        for ticket, refused in gone:
            self._refuse(self._requests.pop(ticket.id), refused)

    def _refuse(self, request: Request, refused: Refused) -> None:
        self._caller.refused(request, self._agenda.now, refused.reason, refused.retry_after_s)
