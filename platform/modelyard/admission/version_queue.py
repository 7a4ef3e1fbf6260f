"""Who may use a slot of one version in one ingress: now, later, or not at all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

from modelyard.admission.bands import BANDS, rank
from modelyard.admission.bound import margin_s, part_of, queue_bound, slack_s
from modelyard.admission.make_room import make_room
from modelyard.admission.outcome import (
    EVICTED,
    EXPIRED_IN_QUEUE,
    MESSAGES,
    QUEUE_FULL,
    WAIT_OVER_DEADLINE,
    Admitted,
    Outcome,
    Refused,
    Waiting,
)
from modelyard.admission.retry_after import retry_after_s
from modelyard.admission.service_times import ServiceTimes, Spread
from modelyard.admission.ticket import Ticket
from modelyard.admission.waiting import Order, WaitingRequests

_ADMITTED: Final = Admitted()
_WAITING: Final = Waiting()


class VersionQueue:
    """Slots and the queue for them. The caller passes the time, and after every call that may make
    room (`finished`, `cancel`, `set_share`, `expire`) asks `ready` who starts.

    share: slots that this ingress may use, of `capacity` in the whole fleet. A ticket ends exactly
    once: refused by `offer`, named as evicted in another's `Waiting`, returned by `expire`, taken
    out by `cancel`, or started (`Admitted`, `ready`, `take`) and then `finished`.
    """

    def __init__(self, order: Order = "deadline", age_cap_s: float = 2.0) -> None:
        self.share = 0
        self.capacity = 0
        self._steady = 0
        self.times: Final = ServiceTimes()
        self._order = (order, age_cap_s)
        self._waiting = WaitingRequests(order, age_cap_s)
        self._late: dict[int, Ticket] = {}  # passed over by `ready`, for `expire` to return
        self._late_at = 0.0
        # Slots by ticket: a retry may hold a second for a moment.
        self._running: dict[int, int] = {}
        self._in_flight = 0
        self._running_by_rank = [0] * len(BANDS)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def waiting(self) -> int:
        return self._waiting.requests

    @property
    def running_by_band(self) -> dict[str, int]:
        return dict(zip(BANDS, self._running_by_rank, strict=True))

    @property
    def waiting_by_band(self) -> dict[str, int]:
        return self._waiting.by_band

    @property
    def next_expiry(self) -> float | None:
        """When `expire` next has something to return; may have passed."""
        if self._late:
            return self._late_at
        return self._waiting.next_expiry

    def reorder(self, order: Order, age_cap_s: float) -> None:
        """Take over another order, for those that wait too. Turns that were owed are forgotten."""
        if (order, age_cap_s) == self._order:
            return
        waited, self._order = self._waiting, (order, age_cap_s)
        self._waiting = WaitingRequests(order, age_cap_s)
        for ticket, expires in waited:
            self._waiting.push(ticket, expires)

    def set_share(self, share: int, capacity: int, steady: int = 0) -> None:
        """A smaller share takes no slot away: those that run end, and nobody starts until then.

        steady: the slots that estimates go by, where that is not the share of this moment.
        """
        self.share = share
        self.capacity = capacity
        self._steady = max(1, steady or share)

    def offer(self, ticket: Ticket, now: float, rng: random.Random) -> Outcome:
        """Ask for a slot, or for a place in the queue.

        A free slot is given whatever the deadline, if it has not passed: that it is shorter than
        what most need does not say what this one needs.
        """
        if now >= ticket.deadline:
            return self._refused(WAIT_OVER_DEADLINE, ticket, rng)
        free = self.share - self._in_flight
        if free > self._waiting.requests:
            if not self._waiting.requests:
                self.take(ticket)
                return _ADMITTED
            self._push(ticket)
            return _WAITING
        return self._queue(ticket, now, rng)

    def ready(self, now: float) -> list[Ticket]:
        """Those that start now; each holds a slot from now on."""
        started: list[Ticket] = []
        waiting = self._waiting
        if not waiting.requests or self._in_flight >= self.share:
            return started
        if late := waiting.expired(now):
            self._late.update((ticket.id, ticket) for ticket in late)
            self._late_at = now
        while waiting.requests and self._in_flight < self.share:
            ticket = waiting.pop(now)
            self.take(ticket)
            started.append(ticket)
        return started

    def take(self, ticket: Ticket) -> None:
        """A slot at once, without asking: a retry, or a turn to the other arm."""
        self._running[ticket.id] = self._running.get(ticket.id, 0) + 1
        self._in_flight += 1
        self._running_by_rank[rank(ticket.band)] += 1

    def give_back(self, ticket: Ticket) -> None:
        """Give the slot back, and learn nothing: of a request that never began here. Raises
        KeyError for a ticket that holds none."""
        slots = self._running.pop(ticket.id)
        if slots > 1:
            self._running[ticket.id] = slots - 1
        self._in_flight -= 1
        self._running_by_rank[rank(ticket.band)] -= 1

    def finished(
        self,
        ticket: Ticket,
        now: float,
        started: float,
        first_at: float | None,
        *,
        cut: bool = False,
    ) -> None:
        """Give the slot back, and learn. Raises KeyError for a ticket that holds none.

        started, first_at: when it got the slot, and its first item if one came. cut: the answer had
        not ended. Of what was cut only a long time says something (ServiceTimes).
        """
        self.give_back(ticket)
        to_first_s = None if first_at is None else first_at - started
        self.times.add(now, now - started, to_first_s, ticket.streams, cut=cut)

    def cancel(self, ticket: Ticket) -> bool:
        """Take it out of the queue; False when it is not in it."""
        if self._late.pop(ticket.id, None) is not None:
            return True
        return self._waiting.remove(ticket) is not None

    def expire(self, now: float, rng: random.Random) -> list[tuple[Ticket, Refused]]:
        """Take out those that could no longer make their deadline."""
        late = [*self._late.values(), *self._waiting.expired(now)]
        self._late.clear()
        return [(ticket, self._refused(EXPIRED_IN_QUEUE, ticket, rng)) for ticket in late]

    def pressure(self, ticket: Ticket) -> float:
        """How full the queue is for this one: 0 empty, 1 full. Of its route's bounds the fullest.

        Counts those who would start before it, so that the tenants who press are degraded first.
        """
        if not self._waiting.requests:
            return 0.0
        fullest = self._waiting.ahead_of(ticket) / self._bound(ticket)
        requests, tokens = self._waiting.of_alias(ticket.alias)
        max_requests, max_tokens = self._limits(ticket)
        if max_requests is not None:
            fullest = max(fullest, requests / max(1, max_requests))
        if max_tokens is not None:
            fullest = max(fullest, tokens / max(1, max_tokens))
        return fullest

    def wait_s(self, ticket: Ticket, now: float) -> float | None:
        """What a ticket that waits, or would, has to wait yet; None before a rate is known."""
        if self.share - self._in_flight > self._waiting.requests:
            return 0.0
        return self._drain_s(self._waiting.ahead_of(ticket) + 1)

    def _queue(self, ticket: Ticket, now: float, rng: random.Random) -> Waiting | Refused:
        place = self._waiting.ahead_of(ticket) + 1
        wait_s = self._drain_s(place)
        if wait_s is not None and wait_s > self._start_by(ticket) - now:
            return self._refused(WAIT_OVER_DEADLINE, ticket, rng)
        if place > self._bound(ticket):
            return self._refused(QUEUE_FULL, ticket, rng)
        self._push(ticket)
        evicted = make_room(self._waiting, ticket, self._bound, *self._limits(ticket))
        if evicted is None:
            return self._refused(QUEUE_FULL, ticket, rng)
        if not evicted:
            return _WAITING
        return Waiting(tuple((one, self._refused(EVICTED, one, rng)) for one in evicted))

    def _push(self, ticket: Ticket) -> None:
        self._waiting.push(ticket, self._start_by(ticket))

    def _drain_s(self, place: float) -> float | None:
        """Until the slot for this place comes free; those that run above the share end first."""
        rate = self._rate()
        overhang = max(0, self._in_flight - self.share)
        return None if rate is None else (place + overhang) / rate

    def _rate(self) -> float | None:
        return self.times.release_rate(max(1, self._steady))

    def _start_by(self, ticket: Ticket) -> float:
        """When it must have started, to make its deadline as most do.

        A stream that begins in time and is cut at its total deadline has used a slot for nothing.
        """
        return min(by - margin_s(needs, by - ticket.arrived) for by, needs in self._needs(ticket))

    def _needs(self, ticket: Ticket) -> Iterator[tuple[float, Spread | None]]:
        """Its deadlines, and the time from its start that each leaves room for."""
        yield ticket.deadline, self.times.start_s(ticket.streams)
        if ticket.whole_by is not None:
            yield ticket.whole_by, self.times.streamed_s()

    def _bound(self, ticket: Ticket) -> int:
        rate = self._rate()
        if rate is None:
            return max(1, self.share)
        return queue_bound(
            rate, min(slack_s(needs, by - ticket.arrived) for by, needs in self._needs(ticket))
        )

    def _limits(self, ticket: Ticket) -> tuple[int | None, int | None]:
        requests, tokens = ticket.max_requests, ticket.max_tokens
        return (
            None if requests is None else part_of(requests, self.share, self.capacity),
            None if tokens is None else part_of(tokens, self.share, self.capacity),
        )

    def _refused(self, reason: str, ticket: Ticket, rng: random.Random) -> Refused:
        ahead = self._waiting.ahead_of(ticket)
        return Refused(reason, retry_after_s(ahead, self._rate(), rng), MESSAGES[reason])
