"""One request of a simulation, and who is told how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from modelyard.simulate.lengths import NOTHING_KNOWN, Length


@dataclass(slots=True)
class Request:
    """service_s: how long it holds its slot. deadline: when its answer is useless. entry: which
    ingress it comes to. length: whose it is, and its tokens. predicted: how long it will be as
    somebody guesses it, in any unit.
    """

    number: int
    arrived: float
    service_s: float
    deadline: float
    band: str = "interactive"
    entry: int = 0
    length: Length = NOTHING_KNOWN
    predicted: float | None = None


class Caller(Protocol):
    """Told of each step of a request."""

    def started(self, request: Request, now: float) -> None: ...

    def answered(self, request: Request, now: float) -> None: ...

    def cut(self, request: Request, now: float) -> None:
        """Cancelled at its deadline, while it had a slot."""
        ...

    def refused(self, request: Request, now: float, reason: str, retry_after_s: float) -> None: ...


class Ingress(Protocol):
    """Where requests arrive."""

    def arrive(self, request: Request) -> None: ...
