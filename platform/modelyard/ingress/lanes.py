"""This ingress's queues, one a lane, and its share of each lane's slots."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf
from typing import Final

from modelyard.admission.shares import Demand, alone, share_of
from modelyard.admission.version_queue import VersionQueue
from modelyard.config.overload import QueueOrder
from modelyard.config.table import Table
from modelyard.control.ingress_post import IngressPost
from modelyard.control.reading import IngressEntry
from modelyard.routing.fleet import Fleet, version_of
from modelyard.routing.lanes import dedicated_cells, slots_of

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
        self._dedicated: frozenset[str] = frozenset()
        self._queues: dict[str, VersionQueue] = {}
        self._others: list[Demand] = []  # asking for nothing
        self._others_wait = False
        self._demands: dict[str, dict[str, Demand]] = {}  # by lane and ingress
        self._read_at = now()
        self._readings = 0
        self._divided: dict[str, int] = {}  # the reading that a lane's share is of
        self._heard_at = inf  # when the other that is silent for longest last spoke
        self._short_since: dict[str, float] = {}

    def __iter__(self) -> Iterator[VersionQueue]:
        return iter(self._queues.values())

    def adopt(self, table: Table) -> None:
        self._table, self._dedicated = table, dedicated_cells(table)
        for lane, queue in self._queues.items():
            queue.reorder(*_order(table, version_of(lane)))

    def queue(self, lane: str) -> VersionQueue:
        """The queue of a lane, with its share as of the last reading."""
        queue = self._queues.get(lane)
        if queue is None:
            assert self._table is not None, "a request is let in under a table"
            queue = self._queues[lane] = VersionQueue(*_order(self._table, version_of(lane)))
        if self._divided.get(lane) != self._readings:
            self.divide(lane, queue)
        return queue

    def take(self, entries: Iterable[IngressEntry]) -> None:
        """The board's reading: what the other ingresses have and want."""
        fresh = [
            entry
            for entry in entries
            if entry.age_s < SILENT_S and entry.post.ingress != self._ingress
        ]
        posts = [entry.post for entry in fresh]
        self._others = [Demand(post.ingress) for post in posts]
        self._others_wait = any(count for post in posts for _, _, count in post.waiting)
        self._demands = _by_lane(posts)
        self._read_at = self._now()
        self._heard_at = self._read_at - max((entry.age_s for entry in fresh), default=-inf)
        self._readings += 1
        for lane, queue in self._queues.items():
            # The others when they are next asked for: there may be two hundred versions.
            if queue.in_flight or queue.waiting:
                self.divide(lane, queue)

    def refresh(self) -> bool:
        """What changes with time alone; whether it did."""
        if not self._is_blind():
            return False
        for lane, queue in self._queues.items():
            self.divide(lane, queue)
        return True

    @property
    def is_contended(self) -> bool:
        """Whether somebody waits, here or at an ingress that should learn of slots given back."""
        return self._others_wait or any(queue.waiting for queue in self)

    @property
    def waiting(self) -> Posted:
        return self._posted(lambda queue: queue.waiting_by_band)

    @property
    def running(self) -> Posted:
        return self._posted(lambda queue: queue.running_by_band)

    def divide(self, lane: str, queue: VersionQueue, arriving: str = "") -> None:
        """Take this ingress's share by what the others last said and by what is asked here now.

        arriving: the band of a request that finds no slot. For this ingress's fair part it need not
        wait for the next reading.
        """
        self._divided[lane] = self._readings
        capacity = slots_of(lane, self._dedicated, self._fleet)
        if self._is_blind():
            queue.set_share(alone(capacity, len(self._others) + 1), capacity)
            return
        waiting = queue.waiting_by_band
        if not queue.waiting:
            self._short_since.pop(lane, None)
        if arriving:
            self._short_since.setdefault(lane, self._now())
            waiting[arriving] += 1
        own = Demand(self._ingress, queue.running_by_band, waiting)
        # One that asks for nothing has its part of what is left over: it must be able to begin.
        asking = self._demands.get(lane, {})
        others = [asking.get(other.ingress, other) for other in self._others]
        heard = self._heard_at >= self._short_since.get(lane, -inf)
        share = share_of(capacity, own, others, queue.share, heard=heard)
        queue.set_share(share.slots, capacity, share.steady)

    def _is_blind(self) -> bool:
        return self._now() - self._read_at >= SILENT_S

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


def _by_lane(posts: Iterable[IngressPost]) -> dict[str, dict[str, Demand]]:
    lanes: dict[str, dict[str, Demand]] = {}
    for post in posts:
        counts: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
        for place, posted in enumerate((post.running, post.waiting)):
            for lane, band, count in posted:
                counts.setdefault(lane, ({}, {}))[place][band] = count
        for lane, (running, waiting) in counts.items():
            lanes.setdefault(lane, {})[post.ingress] = Demand(post.ingress, running, waiting)
    return lanes
