"""The call between ingress and shell: one frozen envelope in, a stream of items out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from modelyard.contract.errors import Failure

__all__ = ["Answer", "Envelope", "Failure", "Item", "Usage"]


@dataclass(frozen=True, slots=True)
class Envelope:
    """One request, as a shell receives it.

    `budget_ms` is what is left of the caller's total deadline, never a wall time: the clocks of two
    nodes do not agree. `claim` is the signed tenant claim; `body` is the validated JSON request of
    the operation, as bytes, so that the ingress never builds an engine's objects.
    """

    claim: str
    version: str
    operation: str
    body: bytes
    stream: bool
    budget_ms: int
    band: str
    request_id: str
    answer_id: str
    model_alias: str
    attempt: int = 1
    traceparent: str | None = None
    arm: str = "stable"
    affinity: str = ""
    labels: tuple[tuple[str, str], ...] = field(default=())


class Usage(NamedTuple):
    """Tokens the engine really used, and why the answer ended."""

    input_tokens: int
    output_tokens: int
    finish_reason: str = "stop"
    cached_tokens: int = 0


class Item(NamedTuple):
    """Bytes ready for the client. `final` is set on the last item of a complete answer, only there.

    A NamedTuple because a stream pickles one per engine step: half the cost of a dataclass.
    `output_tokens` counts this item's tokens, so a cancelled stream is charged for what it sent.
    """

    data: bytes
    output_tokens: int = 0
    final: Usage | None = None


Answer = Item | Failure
