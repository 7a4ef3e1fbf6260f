"""Who holds how much of a queue: the tenants' lines, and which is the longest for its weight."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import Final

from modelyard.admission.prefix_sums import PrefixSums
from modelyard.admission.ticket import Ticket

# Order in a tenant's line; the id is unique, so that two tickets are never compared.
Key = tuple[float, int, Ticket]


class Line:
    """One tenant's waiting tickets in the order in which they shall start."""

    __slots__ = ("keys", "start", "tenant", "turn", "weight")

    def __init__(self, tenant: str, weight: float) -> None:
        self.tenant: Final = tenant
        self.weight = weight
        self.keys: list[Key] = []
        self.start = 0.0  # virtual time of its next turn
        self.turn = 0


class _WeightClass:
    """The lines of one weight, by length."""

    __slots__ = ("at_least", "of_length")

    def __init__(self) -> None:
        self.at_least = PrefixSums()  # [i]: lines that hold more than i
        self.of_length: list[dict[str, Line]] = []  # [i]: those that hold i + 1

    def resized(self, line: Line, before: int, after: int) -> None:
        if before:
            del self.of_length[before - 1][line.tenant]
        while len(self.at_least) < after:
            self.at_least.append_zero()
            self.of_length.append({})
        if after:
            self.of_length[after - 1][line.tenant] = line
        for i in range(before, after):
            self.at_least.add(i, 1)
        for i in range(after, before):
            self.at_least.add(i, -1)
        while len(self.at_least) and not self.at_least[-1]:
            self.at_least.pop()
            self.of_length.pop()

    def up_to(self, most: float) -> float:
        """Sum over the lines of min(length, most)."""
        whole = int(most)
        total: float = self.at_least.of_first(whole)
        if whole < len(self.at_least):
            total += (most - whole) * self.at_least[whole]
        return total

    def longest(self, tenant: str) -> Line:
        lines = self.of_length[-1]
        # The newest: a dict is walked slowly from an end at which others have left it.
        return lines.get(tenant) or next(reversed(lines.values()))


class Holders:
    """Sorted lists, not heaps: what leaves, leaves at once, and cancelled requests are no garbage.

    Inserting moves up to n pointers: for the thousands that may wait less work than a tree.
    """

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self.requests = 0
        self.tokens = 0
        self._classes: dict[float, _WeightClass] = {}

    def add(self, key: Key) -> Line:
        ticket = key[2]
        line = self.lines.get(ticket.tenant)
        if line is None:
            line = self.lines[ticket.tenant] = Line(ticket.tenant, ticket.weight)
        elif line.weight != ticket.weight:
            self._resize(line, len(line.keys), 0)
            line.weight = ticket.weight
            self._resize(line, 0, len(line.keys))
        insort(line.keys, key)
        self._resize(line, len(line.keys) - 1, len(line.keys))
        self.requests += 1
        self.tokens += ticket.tokens
        return line

    def remove(self, key: Key) -> Line:
        ticket = key[2]
        line = self.lines[ticket.tenant]
        del line.keys[bisect_left(line.keys, key)]
        self._resize(line, len(line.keys) + 1, len(line.keys))
        if not line.keys:
            del self.lines[ticket.tenant]
        self.requests -= 1
        self.tokens -= ticket.tokens
        return line

    def last(self, tenant: str) -> Ticket:
        """The last in the line that is longest for its weight; among equals `tenant`'s own."""
        longest = max(
            (of_weight.longest(tenant) for of_weight in self._classes.values()),
            key=lambda line: (len(line.keys) / line.weight, line.tenant == tenant),
        )
        return longest.keys[-1][2]

    def ahead_of(self, key: Key) -> float:
        """Of these, how many start before a ticket that waits or would: fair shares assumed.

        With k of its own before it, each other tenant has (k + 1) turns times its weight over the
        ticket's, or as many as it holds.
        """
        ticket = key[2]
        line = self.lines.get(ticket.tenant)
        before = 0 if line is None else bisect_left(line.keys, key)
        turns = (before + 1) / ticket.weight
        total = sum(of.up_to(turns * weight) for weight, of in self._classes.items())
        if line is not None:
            total += before - min(float(len(line.keys)), turns * line.weight)
        return total

    def _resize(self, line: Line, before: int, after: int) -> None:
        of_weight = self._classes.get(line.weight)
        if of_weight is None:
            of_weight = self._classes[line.weight] = _WeightClass()
        of_weight.resized(line, before, after)
        if not len(of_weight.at_least):
            del self._classes[line.weight]
