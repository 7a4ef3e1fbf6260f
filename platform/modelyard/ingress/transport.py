"""The one door from the pipeline to the replicas. Ray stands behind it in production."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from modelyard.contract.envelope import Answer, Envelope
from modelyard.routing.pool import Cell


class Transport(Protocol):
    """Reaches a replica of a cell. A replica that dies under a request raises ReplicaFailed."""

    async def call(self, cell: Cell, envelope: Envelope) -> Answer:
        """One answer. Cancelling the caller cancels the replica's work."""
        ...

    def stream(self, cell: Cell, envelope: Envelope) -> AsyncGenerator[Answer]:
        """Items as they come. `aclose` cancels the replica's work."""
        ...
