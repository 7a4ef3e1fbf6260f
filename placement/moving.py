"""What a mover needs of a running platform, and at what pace it works."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from modelyard.contract.errors import ModelyardError
from placement.guard import Load, Peak
from placement.plan import Cell
from placement.problem import Packing


class MoveStopped(ModelyardError):
    """A move was not finished. The text says what is so now."""


class Unseen(ModelyardError):
    """The platform did not answer this look; the next one may be answered."""


class Platform(Protocol):
    """ready, ongoing and failure raise Unseen."""

    def deploy(self, cells: tuple[Cell, ...], packing: Packing) -> None:
        """Write the file and deploy it."""

    def ready(self) -> Mapping[str, int]:
        """Replicas that take requests, by app; 0 for an app that is there without any."""

    def ongoing(self, app: str) -> int | None:
        """Requests at the app's replicas; None while its drain is not in force at every ingress, or
        not all of its replicas have been heard since."""

    def drain(self, app: str, for_s: float) -> None:
        """No new requests, for so long at most."""

    def end_drain(self, app: str) -> None: ...

    def failure(self, app: str) -> str:
        """Why it cannot start, "" while it may."""

    def load(self) -> Load: ...


@dataclass(frozen=True, slots=True)
class Pace:
    """ready_within_s: for new cells. drain_taken_within_s: for every ingress to know a drain; the
    move is undone otherwise. drain_within_s: for requests in flight to end; what is left then has
    Serve's graceful shutdown. pause_s: between two batches."""

    ready_within_s: float = 900.0
    drain_taken_within_s: float = 30.0
    drain_within_s: float = 300.0
    pause_s: float = 10.0
    peak: Peak = field(default_factory=Peak)
