"""Several ingresses that divide the slots of one version, by what they last heard of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from modelyard.admission.shares import Demand, share_of
from modelyard.simulate.agenda import Agenda
from modelyard.simulate.queued import QueuedIngress

EXCHANGE_S: Final = 0.2  # as deployments.follow_board


class Board:
    """The last post of each ingress. They take turns to post and to read the others, so that what
    one knows is up to EXCHANGE_S old."""

    def __init__(self, agenda: Agenda, capacity: int, ingresses: Sequence[QueuedIngress]) -> None:
        self.capacity: Final = capacity
        self.posts: dict[int, Demand] = {}
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
        ingress.divide = self.divide

    def post(self) -> None:
        queue = self._ingress.queue
        self._board.posts[self._number] = Demand(
            self._name, queue.running_by_band, queue.waiting_by_band
        )

    def exchange(self) -> None:
        self.post()
        self._others = [
            post for number, post in self._board.posts.items() if number != self._number
        ]
        self.divide()
        self._ingress.pump()
        self._agenda.after(EXCHANGE_S, self.exchange)

    def divide(self, arriving: str = "") -> None:
        """arriving: the band of a request that finds no slot; it counts as waiting."""
        queue, capacity = self._ingress.queue, self._board.capacity
        waiting = queue.waiting_by_band
        if arriving:
            waiting[arriving] += 1
        own = Demand(self._name, queue.running_by_band, waiting)
        share = share_of(capacity, own, self._others)
        queue.set_share(share.slots, capacity, share.steady)
