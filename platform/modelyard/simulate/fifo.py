"""The policies that the seeds compare: one queue, first in first out."""

from __future__ import annotations

from collections import deque
from functools import partial

from modelyard.simulate.agenda import Agenda
from modelyard.simulate.request import Caller, Request
from modelyard.simulate.slots import Slots


class FifoIngress:
    """bound: how many may wait; None: any number. max_wait_s: whoever has waited longer when a slot
    comes free is dropped in its place. A caller that has given up is worked for all the same."""

    def __init__(
        self,
        agenda: Agenda,
        slots: Slots,
        caller: Caller,
        bound: int | None = None,
        max_wait_s: float | None = None,
    ) -> None:
        self._agenda = agenda
        self._slots = slots
        self._caller = caller
        self._bound = bound
        self._max_wait_s = max_wait_s
        self._waiting: deque[Request] = deque()

    def arrive(self, request: Request) -> None:
        if self._bound is not None and len(self._waiting) >= self._bound:
            self._caller.refused(request, self._agenda.now, "rejected", 0.0)
        else:
            self._waiting.append(request)
        self._dispatch()

    def _dispatch(self) -> None:
        now = self._agenda.now
        while self._waiting and self._slots.busy < self._slots.count:
            request = self._waiting.popleft()
            if self._max_wait_s is not None and now - request.arrived > self._max_wait_s:
                self._caller.refused(request, now, "dropped", 0.0)
                continue
            self._caller.started(request, now)
            self._slots.start(request, partial(self._ended, request))

    def _ended(self, request: Request, answered: bool) -> None:
        self._caller.answered(request, self._agenda.now)
        self._dispatch()
