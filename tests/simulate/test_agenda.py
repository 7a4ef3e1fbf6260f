from __future__ import annotations

from functools import partial

from modelyard.simulate.agenda import Agenda


def test_events_happen_in_order_of_time_and_then_of_request() -> None:
    agenda, seen = Agenda(), list[tuple[str, float]]()

    def note(name: str) -> None:
        seen.append((name, agenda.now))

    for name, when in (("c", 2.0), ("a", 1.0), ("b", 1.0)):
        agenda.at(when, partial(note, name))
    agenda.run(until=2.0)
    assert seen == [("a", 1.0), ("b", 1.0), ("c", 2.0)]


def test_what_is_due_later_waits_for_the_next_run() -> None:
    agenda, seen = Agenda(), list[float]()
    agenda.at(3.0, lambda: seen.append(agenda.now))
    agenda.run(until=2.0)
    assert (seen, agenda.now) == ([], 2.0)
    agenda.run(until=4.0)
    assert (seen, agenda.now) == ([3.0], 4.0)


def test_a_cancelled_event_does_not_happen() -> None:
    agenda, seen = Agenda(), list[str]()
    agenda.after(1.0, lambda: seen.append("no")).cancel()
    agenda.run(until=2.0)
    assert seen == []


def test_an_event_can_set_others_and_the_past_means_now() -> None:
    agenda, seen = Agenda(), list[float]()

    def first() -> None:
        agenda.at(0.5, lambda: seen.append(agenda.now))

    agenda.at(1.0, first)
    agenda.run(until=2.0)
    assert seen == [1.0]
