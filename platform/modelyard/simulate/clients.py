"""Clients that are refused: those that come again at once, and those that obey."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from random import Random
from typing import Final, Protocol

from modelyard.admission.outcome import QUEUE_FULL
from modelyard.admission.retry_policy import RetryPolicy
from modelyard.contract.errors import Overloaded
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.request import Ingress, Request

ROUND_TRIP_S: Final = 0.01


@dataclass(slots=True)
class Call:
    """What a user wants once, through all its attempts. gives_up: when its client does."""

    first: Request
    began: float
    gives_up: float
    attempts: int = 0


@dataclass(slots=True)
class Sums:
    """calls: what users wanted. refused: attempts. answered: when, and how long after the call."""

    calls: int = 0
    attempts: int = 0
    refused: int = 0
    answered: list[tuple[float, float]] = field(default_factory=list)


class Client(Protocol):
    def call(self, request: Request) -> None: ...

    def succeeded(self, call: Call) -> None: ...

    def failed(self, call: Call, retry_after_s: float | None) -> None:
        """retry_after_s: None where the attempt was worked on and cut, which is not retried."""
        ...


class Wire:
    """Sends attempts and brings each client its answer. A Caller."""

    def __init__(self, agenda: Agenda, attempt_s: float) -> None:
        self.sums: Final = Sums()
        self.ingress: Ingress | None = None
        self._agenda = agenda
        self._attempt_s = attempt_s
        self._number = count()
        self._sent: dict[int, tuple[Client, Call]] = {}

    def send(self, client: Client, call: Call) -> None:
        assert self.ingress is not None
        now = self._agenda.now
        call.attempts += 1
        self.sums.attempts += 1
        attempt = replace(
            call.first,
            number=next(self._number),
            arrived=now,
            deadline=min(now + self._attempt_s, call.gives_up),
        )
        self._sent[attempt.number] = client, call
        self.ingress.arrive(attempt)

    def started(self, request: Request, now: float) -> None:
        """Nobody is told."""

    def answered(self, request: Request, now: float) -> None:
        client, call = self._sent.pop(request.number)
        self.sums.answered.append((now, now - call.began))
        client.succeeded(call)

    def cut(self, request: Request, now: float) -> None:
        client, call = self._sent.pop(request.number)
        client.failed(call, None)

    def refused(self, request: Request, now: float, reason: str, retry_after_s: float) -> None:
        client, call = self._sent.pop(request.number)
        self.sums.refused += 1
        self._agenda.after(ROUND_TRIP_S, partial(client.failed, call, retry_after_s))


class AtOnce:
    """Sends again at once, up to max_attempts in all, whatever Retry-After says."""

    def __init__(self, agenda: Agenda, wire: Wire, patience_s: float, max_attempts: int) -> None:
        self._agenda = agenda
        self._wire = wire
        self._patience_s = patience_s
        self._max_attempts = max_attempts

    def call(self, request: Request) -> None:
        self._wire.sums.calls += 1
        self._wire.send(self, Call(request, self._agenda.now, self._agenda.now + self._patience_s))

    def succeeded(self, call: Call) -> None:
        """Nothing is left to do."""

    def failed(self, call: Call, retry_after_s: float | None) -> None:
        again = retry_after_s is not None and self._agenda.now < call.gives_up
        if again and call.attempts < self._max_attempts:
            self._wire.send(self, call)


class Obeying:
    """modelyard.client.calls in virtual time: its policy, its budget, its places.

    A call holds its place while it waits to be sent again; its patience begins when it has one.
    rests: the place of a call that was refused for good stays empty for Retry-After.
    """

    def __init__(
        self,
        agenda: Agenda,
        wire: Wire,
        patience_s: float,
        policy: RetryPolicy,
        places: int,
        rng: Random,
        *,
        rests: bool = True,
    ) -> None:
        self._agenda = agenda
        self._wire = wire
        self._patience_s = patience_s
        self._policy = policy
        self._budget = policy.budget(places)
        self._rests = rests
        self._free = places
        self._draw: Callable[[], float] = rng.random
        self._waiting: deque[Request] = deque()

    def call(self, request: Request) -> None:
        self._waiting.append(request)
        self._begin()

    def succeeded(self, call: Call) -> None:
        self._leave()

    def failed(self, call: Call, retry_after_s: float | None) -> None:
        if retry_after_s is None:
            self._leave()
            return
        error = Overloaded("", reason=QUEUE_FULL, retry_after_s=retry_after_s)
        left_s = call.gives_up - self._agenda.now
        pause_s = self._policy.pause_s(error, call.attempts, left_s, self._draw())
        if pause_s is None or not self._budget.retry(error):
            self._agenda.after(self._policy.rest_s(error) if self._rests else 0.0, self._leave)
        else:
            self._agenda.after(pause_s, partial(self._wire.send, self, call))

    def _leave(self) -> None:
        self._free += 1
        self._begin()

    def _begin(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._wire.sums.calls += 1
            self._budget.request()
            request = self._waiting.popleft()
            self._wire.send(
                self, Call(request, self._agenda.now, self._agenda.now + self._patience_s)
            )
