"""The queue under any sequence of what may happen to it."""

import random
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from modelyard.admission.bands import BANDS, rank
from modelyard.admission.outcome import (
    EVICTED,
    EXPIRED_IN_QUEUE,
    QUEUE_FULL,
    WAIT_OVER_DEADLINE,
    Admitted,
    Refused,
)
from modelyard.admission.ticket import Ticket
from modelyard.admission.version_queue import VersionQueue
from modelyard.admission.waiting import Order

WEIGHTS = (1.0, 1.0, 4.0, 0.5)
WITHIN = (0.2, 2.0, 2.0, 10.0, 60.0)
ENDS = (QUEUE_FULL, WAIT_OVER_DEADLINE, EVICTED, EXPIRED_IN_QUEUE)
LIMITS = {"free": (None, None), "narrow": (6, 400)}


class World:
    """A queue, and beside it a plain record of each ticket: waits, runs or ended."""

    def __init__(self, order: Order, share: int) -> None:
        self.queue = VersionQueue(order, 1.0)
        self.queue.set_share(share, 8)
        self.now = 1000.0
        self.rng = random.Random(7)
        self.waiting: dict[int, tuple[Ticket, float]] = {}  # and when it has waited too long
        self.running: dict[int, tuple[Ticket, float]] = {}  # and since when it runs
        self.ended: Counter[int] = Counter()
        self.reasons: Counter[str] = Counter()
        self.made: list[Ticket] = []

    def arrive(self, band: str, tenant: int, within: float, tokens: int, alias: str) -> None:
        self._offer(self._ticket(band, tenant, within, tokens, alias))
        self._settle()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._settle()

    def finish(self, pick: int, answered: bool) -> None:
        if self.running:
            ticket, started = self.running.pop(list(self.running)[pick % len(self.running)])
            self.queue.finished(ticket, self.now, started, self.now if answered else None)
            self.ended[ticket.id] += 1
            self._settle()

    def cancel(self, pick: int) -> None:
        if self.waiting:
            ticket, _ = self.waiting.pop(list(self.waiting)[pick % len(self.waiting)])
            assert self.queue.cancel(ticket)
            assert not self.queue.cancel(ticket)
            self.ended[ticket.id] += 1
            self._settle()

    def share(self, share: int) -> None:
        self.queue.set_share(share, 8)
        self._settle()

    def retry(self, band: str) -> None:
        ticket = self._ticket(band, 0, 60.0, 1, "free")
        self.queue.take(ticket)
        self.running[ticket.id] = (ticket, self.now)

    def learn(self, held_s: float) -> None:
        for _ in range(60):
            self.queue.times.add(self.now, held_s, held_s)

    def check(self) -> None:
        self.the_counts_are_those_of_the_record()
        self.each_is_in_one_place_alone()
        self.nobody_waits_while_a_slot_is_free()
        self.the_timer_is_set_for_the_first_that_expires()

    def the_counts_are_those_of_the_record(self) -> None:
        assert self.queue.in_flight == len(self.running)
        assert self.queue.waiting == len(self.waiting)
        for counts, record in (
            (self.queue.running_by_band, self.running),
            (self.queue.waiting_by_band, self.waiting),
        ):
            assert counts == {b: sum(t.band == b for t, _ in record.values()) for b in BANDS}
        narrow = [t for t, _ in self.waiting.values() if t.alias == "narrow"]
        assert len(narrow) <= 6
        assert sum(t.tokens for t in narrow) <= 400

    def each_is_in_one_place_alone(self) -> None:
        for ticket in self.made:
            places = (ticket.id in self.waiting) + (ticket.id in self.running)
            assert places + self.ended[ticket.id] == 1

    def nobody_waits_while_a_slot_is_free(self) -> None:
        assert not self.waiting or self.queue.in_flight >= self.queue.share

    def the_timer_is_set_for_the_first_that_expires(self) -> None:
        assert self.queue.next_expiry == min((at for _, at in self.waiting.values()), default=None)

    def drain(self) -> None:
        for ticket, _ in list(self.waiting.values()):
            assert self.queue.cancel(ticket)
        for ticket, _ in list(self.running.values()):
            self.queue.give_back(ticket)
        waiting = self.queue._waiting
        assert self.queue.in_flight == self.queue.waiting == 0
        assert set(self.queue.running_by_band.values()) == {0}
        assert self.queue.next_expiry is None
        left = (waiting._entries, waiting._expiries, waiting._aliases, waiting._by_age)
        assert not any((*left, self.queue._late, self.queue._running))
        assert not any(band._debts or band._due or band._turns for band in waiting._bands)

    def _ticket(self, band: str, tenant: int, within: float, tokens: int, alias: str) -> Ticket:
        ticket = Ticket(
            len(self.made) + 1,
            band,
            f"t{tenant}",
            alias,
            WEIGHTS[tenant],
            self.now,
            self.now + within,
            tokens,
            float(tokens),
            *LIMITS[alias],
        )
        self.made.append(ticket)
        return ticket

    def _offer(self, ticket: Ticket) -> None:
        expires = self.queue._start_by(ticket)
        had = Counter[tuple[str, str]]((t.band, t.tenant) for t, _ in self.waiting.values())
        outcome = self.queue.offer(ticket, self.now, self.rng)
        if isinstance(outcome, Admitted):
            assert not self.waiting
            assert self.queue.in_flight <= self.queue.share
            self.running[ticket.id] = (ticket, self.now)
        elif isinstance(outcome, Refused):
            self._end(ticket, outcome, QUEUE_FULL, WAIT_OVER_DEADLINE)
        else:
            self.waiting[ticket.id] = (ticket, expires)
            for evicted, why in outcome.evicted:
                del self.waiting[evicted.id]
                self._end(evicted, why, EVICTED)
                assert rank(evicted.band) >= rank(ticket.band)
                if evicted.band == ticket.band and evicted.alias == "free" == ticket.alias:
                    theirs = had[evicted.band, evicted.tenant] / evicted.weight
                    mine = (had[ticket.band, ticket.tenant] + 1) / ticket.weight
                    assert evicted.tenant == ticket.tenant or theirs > mine

    def _end(self, ticket: Ticket, why: Refused, *reasons: str) -> None:
        assert why.reason in reasons
        assert 1 <= why.retry_after_s <= 120
        self.reasons[why.reason] += 1
        self.ended[ticket.id] += 1

    def _settle(self) -> None:
        """What the ingress does after each event: start whom it may, tell who waited in vain."""
        for ticket in self.queue.ready(self.now):
            _, expires = self.waiting.pop(ticket.id)
            assert self.now < expires
            still = [t for t, at in self.waiting.values() if at > self.now]
            assert all(rank(ticket.band) <= rank(other.band) for other in still)
            self.running[ticket.id] = (ticket, self.now)
            assert len(self.running) <= self.queue.share
        for ticket, why in self.queue.expire(self.now, self.rng):
            _, expires = self.waiting.pop(ticket.id)
            assert expires <= self.now
            self._end(ticket, why, EXPIRED_IN_QUEUE)
        assert all(at > self.now for _, at in self.waiting.values())


class AQueue(RuleBasedStateMachine):
    @initialize(
        order=st.sampled_from(["deadline", "shortest"]),
        share=st.integers(0, 4),
        held_s=st.sampled_from([None, 0.05, 0.4]),
    )
    def begin(self, order: Order, share: int, held_s: float | None) -> None:
        self.world = World(order, share)
        if held_s is not None:
            self.world.learn(held_s)

    @rule(
        band=st.sampled_from(BANDS),
        tenants=st.lists(st.integers(0, 3), min_size=1, max_size=12),
        within=st.sampled_from(WITHIN),
        tokens=st.integers(1, 300),
        alias=st.sampled_from(sorted(LIMITS)),
    )
    def arrive(self, band: str, tenants: list[int], within: float, tokens: int, alias: str) -> None:
        for tenant in tenants:
            self.world.arrive(band, tenant, within, tokens, alias)

    @rule(seconds=st.sampled_from([0.0, 0.01, 0.3, 1.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    @rule(picks=st.lists(st.integers(0, 99), min_size=1, max_size=5), answered=st.booleans())
    def finish(self, picks: list[int], answered: bool) -> None:
        for pick in picks:
            self.world.finish(pick, answered)

    @rule(pick=st.integers(0, 99))
    def cancel(self, pick: int) -> None:
        self.world.cancel(pick)

    @rule(share=st.integers(0, 8))
    def share(self, share: int) -> None:
        self.world.share(share)

    @rule(band=st.sampled_from(BANDS))
    def retry(self, band: str) -> None:
        self.world.retry(band)

    @rule(held_s=st.sampled_from([0.05, 0.4, 5.0]))
    def learn(self, held_s: float) -> None:
        self.world.learn(held_s)

    @invariant()
    def the_record_agrees(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.drain()


TestAQueue = AQueue.TestCase
TestAQueue.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)


@pytest.mark.parametrize("seed", range(6))
def test_a_long_walk_under_overload_meets_every_end(seed: int) -> None:
    """Hypothesis prefers short ways, on which the queue is seldom full for long."""
    rng = random.Random(seed)
    world = World("shortest" if seed % 2 else "deadline", 4)
    for _ in range(1500):
        world.arrive(
            rng.choice(BANDS),
            rng.choice([0, 0, 0, 1, 2, 3]),
            rng.choice(WITHIN),
            rng.randint(1, 300),
            rng.choice(["free", "free", "narrow"]),
        )
        world.wait(rng.expovariate(20.0))
        if rng.random() < 0.5:
            world.finish(rng.randrange(99), rng.random() < 0.9)
        if rng.random() < 0.05:
            world.cancel(rng.randrange(99))
        if rng.random() < 0.02:
            world.share(rng.choice([0, 2, 4, 4, 8]))
        world.check()
    assert min(world.reasons[reason] for reason in ENDS) >= 10
    world.drain()
