"""A slot that a request has."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.admission.ticket import Ticket


@dataclass(frozen=True, slots=True)
class Place:
    """A slot of a lane, held since `started` (seconds on the ingress's clock)."""

    lane: str
    ticket: Ticket
    started: float
