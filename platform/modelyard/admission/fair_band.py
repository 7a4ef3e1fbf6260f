"""The waiting requests of one band, fair between tenants."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Final

from modelyard.admission.holders import Holders, Key, Line

MAX_DEBTS: Final = 1024


class FairBand:
    """Start-time fair queueing (Goyal, Vin and Cheng, 1996) over the tenants that have work here.

    Each request costs its tenant 1 / weight of virtual time, and the tenant furthest back is next.
    The cost is one request, not its tokens: a slot is what is given out, a cap says little about
    the tokens that will come, and the quota already counts tokens. Tags belong to tenants, not to
    requests, so that one that is cancelled or evicted was never paid for. A tenant that was idle
    begins at the present virtual time: idleness earns no credit. One that has just been served and
    has nothing more here keeps its tag as a debt until the others have caught up.
    """

    def __init__(self) -> None:
        self.held: Final = Holders()
        self._turns: list[tuple[float, int, Line]] = []
        self._turn = 0
        self._virtual = 0.0
        self._debts: dict[str, float] = {}
        self._due: list[tuple[float, str]] = []  # the same, by size

    def push(self, key: Key) -> None:
        line = self.held.add(key)
        if len(line.keys) == 1:
            line.start = max(self._virtual, self._settled(line.tenant))
            self._enter(line)

    def remove(self, key: Key) -> None:
        line = self.held.remove(key)
        if not line.keys:
            del self._turns[bisect_left(self._turns, (line.start, line.turn, line))]
            self._leave(line)

    def next_line(self) -> Line:
        return self._turns[0][2]

    def served(self, key: Key) -> None:
        """Take out a request of the line whose turn it is, and charge for it."""
        _, _, line = self._turns.pop(0)
        self.held.remove(key)
        self._virtual = line.start
        line.start += 1.0 / line.weight
        if line.keys:
            self._enter(line)
        else:
            self._leave(line)
        self._forgive(bisect_right(self._due, (self._virtual, "\U0010ffff")))

    def _enter(self, line: Line) -> None:
        self._turn += 1
        line.turn = self._turn
        insort(self._turns, (line.start, line.turn, line))

    def _leave(self, line: Line) -> None:
        if not self._turns:  # nobody waits: nothing is owed to anybody
            self._virtual = 0.0
            self._debts.clear()
            self._due.clear()
        elif line.start > self._virtual:
            self._debts[line.tenant] = line.start
            insort(self._due, (line.start, line.tenant))
            if len(self._due) > MAX_DEBTS:  # strangers that ask once each, without end
                self._forgive(1)

    def _settled(self, tenant: str) -> float:
        debt = self._debts.pop(tenant, None)
        if debt is None:
            return self._virtual
        del self._due[bisect_left(self._due, (debt, tenant))]
        return debt

    def _forgive(self, smallest: int) -> None:
        for _, tenant in self._due[:smallest]:
            del self._debts[tenant]
        del self._due[:smallest]
