"""The thread of an ingress, which every attempt costs a little: also one that is refused."""

from __future__ import annotations

from functools import partial

from modelyard.simulate.agenda import Agenda
from modelyard.simulate.request import Ingress, Request


class Front:
    """Takes one attempt at a time, cost_s each, in the order in which they came."""

    def __init__(self, agenda: Agenda, ingress: Ingress, cost_s: float) -> None:
        self._agenda = agenda
        self._ingress = ingress
        self._cost_s = cost_s
        self._free_at = 0.0

    def arrive(self, request: Request) -> None:
        self._free_at = max(self._free_at, self._agenda.now) + self._cost_s
        self._agenda.at(self._free_at, partial(self._ingress.arrive, request))
