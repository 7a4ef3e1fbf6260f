"""Two ingresses in front of four slots."""

from __future__ import annotations

from random import Random

from modelyard.admission.version_queue import VersionQueue
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.queued import QueuedIngress
from modelyard.simulate.request import Request
from modelyard.simulate.sharing import EXCHANGE_S, HURRIED_S, Board
from modelyard.simulate.slots import Slots
from modelyard.simulate.tally import Tally


class World:
    def __init__(self) -> None:
        self.agenda, self.tally = Agenda(), Tally()
        self.slots = Slots(self.agenda, 4, lambda request: request.service_s)
        self.ingresses = [
            QueuedIngress(self.agenda, self.slots, self.tally, VersionQueue(), Random(number))
            for number in range(2)
        ]
        Board(self.agenda, 4, self.ingresses)

    def arrive(self, entry: int, service_s: float) -> None:
        now = self.agenda.now
        self.ingresses[entry].arrive(Request(0, now, service_s, now + 60.0, entry=entry))

    def shares(self) -> list[int]:
        return [ingress.queue.share for ingress in self.ingresses]


def test_an_idle_ingress_lends_its_slots_and_has_them_back_for_its_first_request() -> None:
    world = World()
    world.agenda.run(until=EXCHANGE_S)
    for _ in range(8):
        world.arrive(0, service_s=1.0)
    world.agenda.run(until=3 * EXCHANGE_S)
    assert world.shares()[0] == 4
    assert world.slots.busy == 4
    world.arrive(1, service_s=0.1)
    assert world.shares()[1] >= 1
    world.agenda.run(until=5.0)
    assert world.tally.count("in time", entry=1) == 1


def test_a_stale_share_starts_nothing_beyond_the_slots() -> None:
    world = World()
    for _ in range(6):
        world.arrive(0, service_s=0.3)
        world.arrive(1, service_s=0.3)
        assert world.slots.busy <= 4
    world.agenda.run(until=10.0)
    assert world.tally.count("in time") + world.tally.count("queue_full") == 12
    assert world.slots.busy == 0


def test_a_share_that_grows_with_an_arrival_starts_who_waited_before_it() -> None:
    """As in the turnstile: not from the next answer or exchange on."""
    world = World()
    world.agenda.run(until=EXCHANGE_S)
    for _ in range(6):
        world.arrive(0, service_s=5.0)
    one = world.ingresses[0]
    assert one.queue.waiting
    assert one.divide is not None
    before = one.queue.in_flight
    one.divide = lambda band: one.queue.set_share(before + 1, 4)
    world.arrive(0, service_s=5.0)
    assert one.queue.in_flight == before + 1


def test_two_that_want_all_get_half() -> None:
    world = World()
    for _ in range(4):
        world.arrive(0, service_s=5.0)
        world.arrive(1, service_s=5.0)
    world.agenda.run(until=2 * EXCHANGE_S)
    assert world.shares() == [2, 2]


def test_a_burst_at_two_idle_ingresses_takes_no_more_than_the_slots() -> None:
    """Each was told that the other is idle, and neither may take all for that."""
    world = World()
    world.agenda.run(until=3 * EXCHANGE_S)
    for number in range(8):
        world.agenda.at(world.agenda.now + 0.01 * number, lambda: world.arrive(0, 5.0))
        world.agenda.at(world.agenda.now + 0.01 * number, lambda: world.arrive(1, 5.0))
    for _ in range(40):
        world.agenda.run(until=world.agenda.now + 0.05)
        assert sum(ingress.queue.in_flight for ingress in world.ingresses) <= 4


def test_a_burst_at_one_of_two_has_every_slot_within_one_exchange() -> None:
    world = World()
    world.agenda.run(until=3 * EXCHANGE_S)
    for _ in range(6):
        world.arrive(0, service_s=5.0)
    assert world.ingresses[0].queue.in_flight == 2  # its fair part, at once
    world.agenda.run(until=world.agenda.now + EXCHANGE_S + HURRIED_S)
    assert world.ingresses[0].queue.in_flight == 4
