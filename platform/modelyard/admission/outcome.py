"""What the queue answers to a request that asks for a slot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.admission.ticket import Ticket

# The words of requests_rejected_total{reason}.
QUEUE_FULL: Final = "queue_full"
WAIT_OVER_DEADLINE: Final = "wait_over_deadline"
EVICTED: Final = "evicted"
EXPIRED_IN_QUEUE: Final = "expired_in_queue"

MESSAGES: Final = {
    QUEUE_FULL: "too many requests wait for this model; send it again after Retry-After",
    WAIT_OVER_DEADLINE: (
        "the wait for this model is longer than the request's deadline allows; "
        "send it again after Retry-After or with a later deadline"
    ),
    EVICTED: "the request had to leave a full queue to others; send it again after Retry-After",
    EXPIRED_IN_QUEUE: (
        "the request could not be started in time for its deadline; send it again after Retry-After"
    ),
}


@dataclass(frozen=True, slots=True)
class Admitted:
    """It holds a slot from now on."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It ends here. reason: one of the four words above. retry_after_s: from 1 to 120."""

    reason: str
    retry_after_s: float
    message: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """It waits. evicted: those that had to leave so that it could."""

    evicted: tuple[tuple[Ticket, Refused], ...] = ()


Outcome = Admitted | Waiting | Refused
