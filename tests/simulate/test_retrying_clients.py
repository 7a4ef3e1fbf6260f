"""What each kind of client does with a refusal."""

from __future__ import annotations

from itertools import pairwise
from random import Random

from modelyard.admission.retry_policy import RetryPolicy
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.clients import AtOnce, Obeying, Wire
from modelyard.simulate.request import Request


class Refusing:
    """Refuses everything; `after` it, answers."""

    def __init__(self, agenda: Agenda, wire: Wire, after: float = float("inf")) -> None:
        self.at: list[float] = []
        self._agenda = agenda
        self._wire = wire
        self._after = after
        wire.ingress = self

    def arrive(self, request: Request) -> None:
        now = self._agenda.now
        self.at.append(now)
        if now >= self._after:
            self._wire.answered(request, now)
        else:
            self._wire.refused(request, now, "queue_full", 2.0)


def request() -> Request:
    return Request(number=0, arrived=0.0, service_s=0.1, deadline=2.0)


def obeying(agenda: Agenda, wire: Wire, places: int = 1, rests: bool = True) -> Obeying:
    return Obeying(agenda, wire, 30.0, RetryPolicy(), places, Random(1), rests=rests)


def test_one_that_comes_at_once_uses_up_its_attempts_within_a_moment() -> None:
    agenda = Agenda()
    wire = Wire(agenda, 2.0)
    server = Refusing(agenda, wire)
    AtOnce(agenda, wire, 10.0, max_attempts=4).call(request())
    agenda.run(until=10.0)
    assert len(server.at) == wire.sums.attempts == wire.sums.refused == 4
    assert server.at[-1] < 0.1


def test_one_that_obeys_waits_for_retry_after_and_holds_its_place() -> None:
    agenda = Agenda()
    wire = Wire(agenda, 2.0)
    server = Refusing(agenda, wire, after=1.0)
    client = obeying(agenda, wire)
    client.call(request())
    client.call(request())
    agenda.run(until=1.9)
    assert server.at == [0.0]
    agenda.run(until=10.0)
    assert len(server.at) == 3
    assert len(wire.sums.answered) == 2


def test_without_budget_the_call_ends_and_its_place_rests() -> None:
    agenda = Agenda()
    wire = Wire(agenda, 2.0)
    server = Refusing(agenda, wire)
    client = obeying(agenda, wire)
    for _ in range(5):
        client.call(request())
    agenda.run(until=30.0)
    assert wire.sums.calls == 5
    assert wire.sums.attempts == 6  # one retry, then only what was earned
    assert all(later - earlier >= 2.0 for earlier, later in pairwise(server.at))


def test_one_that_was_cut_is_not_sent_again() -> None:
    agenda = Agenda()
    wire = Wire(agenda, 2.0)

    class Cutting:
        def arrive(self, request: Request) -> None:
            wire.cut(request, agenda.now)

    wire.ingress = Cutting()
    obeying(agenda, wire).call(request())
    AtOnce(agenda, wire, 10.0, max_attempts=4).call(request())
    agenda.run(until=30.0)
    assert wire.sums.attempts == 2
