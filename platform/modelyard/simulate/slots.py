"""A server that works on so many requests at once."""

from __future__ import annotations

from collections.abc import Callable

from modelyard.simulate.agenda import Agenda
from modelyard.simulate.request import Request


class Slots:
    """The replicas behind the queue. `count` is the hard stop that max_ongoing_requests is there.

    service_s: how long a request that starts now holds its slot.
    """

    def __init__(self, agenda: Agenda, count: int, service_s: Callable[[Request], float]) -> None:
        self.count = count
        self.busy = 0
        self._agenda = agenda
        self._service_s = service_s

    def start(
        self, request: Request, ended: Callable[[bool], None], until: float | None = None
    ) -> bool:
        """Work on it, then say whether it was answered. False when every slot is busy.

        until: the moment at which it is cancelled, which frees its slot; None: never.
        """
        if self.busy >= self.count:
            return False
        self.busy += 1
        finish = self._agenda.now + self._service_s(request)
        answered = until is None or finish <= until

        def end() -> None:
            self.busy -= 1
            ended(answered)

        self._agenda.at(finish if until is None else min(finish, until), end)
        return True
