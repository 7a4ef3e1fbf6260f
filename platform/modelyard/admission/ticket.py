"""What the queue knows of one request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ticket:
    """One request that asks for a slot of one version. Times are seconds on a monotonic clock.

    id: rising in the order of arrival, unique in this queue. weight: of the tenant's tier, above 0.
    deadline: of the first item for a stream, of the whole answer otherwise. tokens: the prompt's
    estimate plus the output cap times the choices. length: predicted output, for shortest-first;
    None sorts last. max_requests, max_tokens: the route's bounds on what waits, for the whole
    fleet. streams: the first item comes before the whole answer, so the two are learned apart.
    whole_by: the deadline of a stream's whole answer, where it has one beside that of its first
    item.
    """

    id: int
    band: str
    tenant: str
    alias: str
    weight: float
    arrived: float
    deadline: float
    tokens: int
    length: float | None = None
    max_requests: int | None = None
    max_tokens: int | None = None
    streams: bool = False
    whole_by: float | None = None
