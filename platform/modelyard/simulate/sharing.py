"""Several ingresses that divide the slots of one version, by what they last heard of each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from modelyard.admission.shares import Demand, share_of
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.queued import QueuedIngress

EXCHANGE_S: Final = 0.2  # as deployments.follow_board
HURRIED_S: Final = 0.05  # while somebody waits, here or elsewhere


class Board:
    """The last post of each ingress. They take turns to post and to read the others, so that what
    one knows is up to EXCHANGE_S old."""

    def __init__(self, agenda: Agenda, capacity: int, ingresses: Sequence[QueuedIngress]) -> None:
        self.capacity: Final = capacity
        self.posts: dict[int, Demand] = {}
        self.posted_at: dict[int, float] = {}
        lanes = [_Lane(agenda, self, *one) for one in enumerate(ingresses)]
        for lane in lanes:
            lane.post()
        for number, lane in enumerate(lanes):
            agenda.at(EXCHANGE_S * number / len(lanes), lane.exchange)


class _Lane:
    """What modelyard.ingress.lanes does for one ingress."""

    def __init__(self, agenda: Agenda, board: Board, number: int, ingress: QueuedIngress) -> None:
        self._agenda = agenda
        self._board = board
        self._number = number
        self._name = f"ingress-{number}"
        self._ingress = ingress
        self._others: list[Demand] = []
        self._heard_at = inf
        self._short_since: float | None = None
        self._exchanges = 0
        ingress.divide = self.divide

    def post(self) -> None:
        queue = self._ingress.queue
        self._board.posts[self._number] = Demand(
            self._name, queue.running_by_band, queue.waiting_by_band
        )
        self._board.posted_at[self._number] = self._agenda.now

    def exchange(self) -> None:
        self._exchanges += 1
        self.post()
        others = [number for number in self._board.posts if number != self._number]
        self._others = [self._board.posts[number] for number in others]
        self._heard_at = min((self._board.posted_at[number] for number in others), default=inf)
        self.divide()
        self._ingress.pump()
        self._again(HURRIED_S if self._is_contended() else EXCHANGE_S)

    def _again(self, after_s: float) -> None:
        """The next exchange; a later one that was planned is then void."""
        planned = self._exchanges
        self._agenda.after(after_s, lambda: self.exchange() if self._exchanges == planned else None)

    def _is_contended(self) -> bool:
        return bool(self._ingress.queue.waiting) or any(
            any(other.waiting.values()) for other in self._others
        )

    def divide(self, arriving: str = "") -> None:
        """arriving: the band of a request that finds no slot; it counts as waiting."""
        queue, capacity = self._ingress.queue, self._board.capacity
        waiting = queue.waiting_by_band
        if not queue.waiting:
            self._short_since = None
        if arriving:
            waiting[arriving] += 1
            if self._short_since is None:
                self._short_since = self._agenda.now
                self._again(HURRIED_S)
        own = Demand(self._name, queue.running_by_band, waiting)
        heard = self._short_since is None or self._heard_at >= self._short_since
        share = share_of(capacity, own, self._others, queue.share, heard=heard)
        queue.set_share(share.slots, capacity, share.steady)
