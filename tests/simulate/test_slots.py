from __future__ import annotations

from modelyard.simulate.agenda import Agenda
from modelyard.simulate.request import Request
from modelyard.simulate.slots import Slots


def request(service_s: float) -> Request:
    return Request(number=0, arrived=0.0, service_s=service_s, deadline=2.0)


def test_a_full_server_takes_nothing_more_until_one_ends() -> None:
    agenda, ended = Agenda(), list[bool]()
    slots = Slots(agenda, 1, lambda one: one.service_s)
    assert slots.start(request(1.0), ended.append)
    assert not slots.start(request(1.0), ended.append)
    agenda.run(until=1.0)
    assert ended == [True]
    assert slots.start(request(1.0), ended.append)


def test_what_is_cut_frees_its_slot_then_and_was_not_answered() -> None:
    agenda, ended = Agenda(), list[tuple[float, bool]]()
    slots = Slots(agenda, 1, lambda one: one.service_s)
    slots.start(request(5.0), lambda answered: ended.append((agenda.now, answered)), until=2.0)
    agenda.run(until=10.0)
    assert ended == [(2.0, False)]
    assert slots.busy == 0
