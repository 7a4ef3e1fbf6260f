"""This ingress's queues, one a lane, and its share of each lane's slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from modelyard.admission.shares import Demand, alone, share_of
from modelyard.admission.version_queue import VersionQueue
from modelyard.config.overload import QueueOrder
from modelyard.config.table import Table
from modelyard.control.ingress_post import IngressPost
from modelyard.control.reading import IngressEntry
from modelyard.routing.fleet import Fleet, version_of
from modelyard.routing.lanes import slots_of

SILENT_S: Final = 2.0  # ten posts missed: an ingress is gone, or the board is
Posted = tuple[tuple[str, str, int], ...]


class Lanes:
    """One per ingress process. Shares follow each reading of the board; without one for two
    seconds this ingress takes its part of the ingresses last known."""

    def __init__(self, ingress: str, fleet: Fleet, now: Callable[[], float]) -> None:
        self._ingress = ingress
        self._fleet = fleet
        self._now = now
        self._table: Table | None = None
        self._queues: dict[str, VersionQueue] = {}
        self._others: list[IngressPost] = []
        self._read_at = now()

    def __iter__(self) -> Iterator[VersionQueue]:
        return iter(self._queues.values())

    def adopt(self, table: Table) -> None:
        """A queue whose order the table changes is made anew; what it has learned is not kept."""
        if self._table is not None:
            for lane, queue in list(self._queues.items()):
                version = version_of(lane)
                changed = _order(table, version) != _order(self._table, version)
                if changed and not queue.in_flight and not queue.waiting:
                    del self._queues[lane]
        self._table = table

    def queue(self, lane: str) -> VersionQueue:
        queue = self._queues.get(lane)
        if queue is None:
            assert self._table is not None, "a request is let in under a table"
            order, age_cap_s = _order(self._table, version_of(lane))
            queue = self._queues[lane] = VersionQueue(order, age_cap_s)
            self.divide(lane, queue)
        return queue

    def take(self, entries: Iterable[IngressEntry]) -> None:
        """The board's reading: what the other ingresses have and want."""
        self._others = [
            entry.post
            for entry in entries
            if entry.age_s < SILENT_S and entry.post.ingress != self._ingress
        ]
        self._read_at = self._now()
        for lane, queue in self._queues.items():
            self.divide(lane, queue)

    def refresh(self) -> bool:
        """What changes with time alone; whether it did."""
        if not self._is_blind():
            return False
        for lane, queue in self._queues.items():
            capacity = self._slots(lane)
            queue.set_share(alone(capacity, len(self._others) + 1), capacity)
        return True

    @property
    def waiting(self) -> Posted:
        return self._posted(lambda queue: queue.waiting_by_band)

    @property
    def running(self) -> Posted:
        return self._posted(lambda queue: queue.running_by_band)

    def divide(self, lane: str, queue: VersionQueue, arriving: str = "") -> None:
        """Take this ingress's share by what the others last said and by what is asked here now.

        arriving: the band of a request that finds no slot. It need not wait for the next reading:
        what the others do not know yet costs a replica's refusal at most, and only until then.
        """
        if arriving and self._is_blind():
            return
        capacity = self._slots(lane)
        # One that asks for nothing has its part of what is left over: it must be able to begin.
        demands = [
            Demand(post.ingress, _bands(lane, post.running), _bands(lane, post.waiting))
            for post in self._others
        ]
        waiting = queue.waiting_by_band
        if arriving:
            waiting[arriving] += 1
        own = Demand(self._ingress, queue.running_by_band, waiting)
        share = share_of(capacity, own, demands)
        queue.set_share(share.slots, capacity, share.steady)

    def _is_blind(self) -> bool:
        return self._now() - self._read_at >= SILENT_S

    def _slots(self, lane: str) -> int:
        return 0 if self._table is None else slots_of(lane, self._table, self._fleet)

    def _posted(self, counts: Callable[[VersionQueue], Mapping[str, int]]) -> Posted:
        return tuple(
            (lane, band, count)
            for lane, queue in sorted(self._queues.items())
            for band, count in counts(queue).items()
            if count
        )


def _order(table: Table, version: str) -> tuple[QueueOrder, float]:
    overload = table.overload_of(version)
    return overload.order, overload.age_cap_s


def _bands(lane: str, posted: Posted) -> dict[str, int]:
    return {band: count for name, band, count in posted if name == lane}
