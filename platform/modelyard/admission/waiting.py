"""The requests of one version that wait in this ingress, in the order in which they shall start."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from math import inf
from typing import Final, Literal, NamedTuple

from modelyard.admission.bands import BANDS, rank
from modelyard.admission.fair_band import FairBand
from modelyard.admission.holders import Holders, Key, Line
from modelyard.admission.ticket import Ticket

Order = Literal["deadline", "shortest"]


class _Entry(NamedTuple):
    key: Key
    expires: float
    rank: int


class WaitingRequests:
    """Strict bands; in a band fair between tenants; in a tenant the earliest deadline first.

    order: "shortest" puts the shortest predicted first instead, but whoever has waited for
    `age_cap_s` comes before all others of its tenant. A step is O(log n) but for moved
    pointers; it is O(length of the line) where the weight of a tenant's tier has changed.
    """

    def __init__(self, order: Order = "deadline", age_cap_s: float = 2.0) -> None:
        self._shortest = order == "shortest"
        self._age_cap_s = age_cap_s
        self._bands: Final = tuple(FairBand() for _ in BANDS)
        self._entries: dict[int, _Entry] = {}
        self._expiries: list[tuple[float, int]] = []
        self._aliases: dict[str, tuple[Holders, ...]] = {}
        self._by_age: dict[tuple[int, str], list[int]] = {}

    @property
    def requests(self) -> int:
        return len(self._entries)

    @property
    def by_band(self) -> dict[str, int]:
        return {name: band.held.requests for name, band in zip(BANDS, self._bands, strict=True)}

    @property
    def next_expiry(self) -> float | None:
        return self._expiries[0][0] if self._expiries else None

    def __iter__(self) -> Iterator[tuple[Ticket, float]]:
        """Those that wait, and when each expires."""
        return ((entry.key[2], entry.expires) for entry in self._entries.values())

    def through(self, band: int) -> int:
        """Requests in the bands of this rank and above."""
        return sum(self._bands[i].held.requests for i in range(band + 1))

    def of_alias(self, alias: str) -> tuple[int, int]:
        """Requests and tokens that wait under an alias."""
        held = self._aliases.get(alias, ())
        return sum(band.requests for band in held), sum(band.tokens for band in held)

    def push(self, ticket: Ticket, expires: float) -> None:
        entry = _Entry(self._key(ticket), expires, rank(ticket.band))
        self._entries[ticket.id] = entry
        self._bands[entry.rank].push(entry.key)
        insort(self._expiries, (expires, ticket.id))
        held = self._aliases.get(ticket.alias)
        if held is None:
            held = self._aliases[ticket.alias] = tuple(Holders() for _ in BANDS)
        held[entry.rank].add(entry.key)
        if self._shortest:
            insort(self._by_age.setdefault((entry.rank, ticket.tenant), []), ticket.id)

    def remove(self, ticket: Ticket) -> float | None:
        """Take a request out; when it would have expired, or None if it does not wait."""
        entry = self._entries.get(ticket.id)
        if entry is None:
            return None
        self._bands[entry.rank].remove(entry.key)
        self._drop(entry)
        return entry.expires

    def pop(self, now: float) -> Ticket:
        """The next to start, out of the queue. Raises IndexError when nobody waits."""
        for i, band in enumerate(self._bands):
            if band.held.requests:
                key = self._first(band.next_line(), i, now)
                band.served(key)
                self._drop(self._entries[key[2].id])
                return key[2]
        raise IndexError("nobody waits")

    def expired(self, now: float) -> list[Ticket]:
        """Take out those whose time to start has passed."""
        late = self._expiries[: bisect_right(self._expiries, (now, inf))]
        tickets = [self._entries[number].key[2] for _, number in late]
        for ticket in tickets:
            self.remove(ticket)
        return tickets

    def ahead_of(self, ticket: Ticket) -> float:
        """How many start before a ticket that waits, or would if it came now."""
        band = rank(ticket.band)
        return self.through(band - 1) + self._bands[band].held.ahead_of(self._key(ticket))

    def last_of_band(self, band: int, tenant: str) -> Ticket | None:
        """The one to leave a band of this rank: last of the tenant with most for its weight.

        Among equals `tenant`'s own: who comes must hold less than another to push it out.
        """
        held = self._bands[band].held
        return held.last(tenant) if held.requests else None

    def last_of_alias(self, alias: str, tenant: str) -> Ticket:
        """The same among those under an alias, in its lowest band. Raises KeyError for none."""
        lowest = next(held for held in reversed(self._aliases[alias]) if held.requests)
        return lowest.last(tenant)

    def _key(self, ticket: Ticket) -> Key:
        if not self._shortest:
            return (ticket.deadline, ticket.id, ticket)
        return (inf if ticket.length is None else ticket.length, ticket.id, ticket)

    def _first(self, line: Line, band: int, now: float) -> Key:
        if self._shortest:
            oldest = self._entries[self._by_age[band, line.tenant][0]].key
            if now - oldest[2].arrived >= self._age_cap_s:
                return oldest
        return line.keys[0]

    def _drop(self, entry: _Entry) -> None:
        ticket = entry.key[2]
        del self._entries[ticket.id]
        del self._expiries[bisect_left(self._expiries, (entry.expires, ticket.id))]
        held = self._aliases[ticket.alias]
        held[entry.rank].remove(entry.key)
        if not any(band.requests for band in held):
            del self._aliases[ticket.alias]
        if self._shortest:
            ages = self._by_age[entry.rank, ticket.tenant]
            del ages[bisect_left(ages, ticket.id)]
            if not ages:
                del self._by_age[entry.rank, ticket.tenant]
