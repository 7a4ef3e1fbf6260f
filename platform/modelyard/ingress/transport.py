"""The one door from the pipeline to the replicas. Ray stands behind it in production."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from modelyard.contract.envelope import Answer, Envelope


class Transport(Protocol):
    """Reaches a replica of an app. A replica that dies under a request raises ReplicaFailed."""

    async def call(self, app: str, envelope: Envelope) -> Answer:
        """One answer. Cancelling the caller cancels the replica's work."""
        ...

    def stream(self, app: str, envelope: Envelope) -> AsyncGenerator[Answer]:
        """Items as they come. `aclose` cancels the replica's work."""
        ...
