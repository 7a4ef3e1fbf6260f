"""What a request needs of its tenant's buckets, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from modelyard.contract.errors import InvalidRequest, RateLimited, RequestError
from modelyard.quota.figures import Direction, ModelClass

WHAT: Final[dict[Direction, str]] = {
    "input": "input tokens",
    "output": "output tokens",
    "requests": "requests",
    "sequences": "concurrent answers",
}


@dataclass(frozen=True, slots=True)
class Need:
    """The most that one request may use. sequences: its answers, of all its prompts together.

    An amount that the caller did not say (an estimated input, the route's default cap) is lowered
    to what the bucket can ever hold, because a small quota must not refuse every request that
    leaves out its cap. The engine's own count settles it.
    """

    request_id: str
    tenant: str
    model_class: ModelClass
    input_tokens: int
    output_tokens: int = 0
    sequences: int = 1
    input_is_exact: bool = False
    output_is_explicit: bool = True

    def amounts(self) -> dict[Direction, tuple[int, bool]]:
        """By direction, and whether the caller has said it himself."""
        return {
            "input": (self.input_tokens, self.input_is_exact),
            "output": (self.output_tokens, self.output_is_explicit),
            "requests": (1, True),
            "sequences": (self.sequences, True),
        }


@dataclass(slots=True)
class Reservation:
    """Taken tokens, requests and permits by direction, until it is settled, once.

    incarnation: of the holder then; a refund does not go into splits of a later one.
    """

    need: Need
    incarnation: int
    taken: Mapping[Direction, int] = field(default_factory=dict)
    settled: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Not now. direction: of the bucket that would take longest; missing in its own unit."""

    need: Need
    direction: Direction
    missing: float
    retry_after_s: float

    def error(self) -> RequestError:
        return RateLimited(
            f"the quota of {WHAT[self.direction]} is used up, {max(1.0, self.missing):.0f} more "
            f"are needed: try again in {max(1.0, self.retry_after_s):.0f} s",
            reason=f"quota_{self.direction}",
            retry_after_s=self.retry_after_s,
        )


@dataclass(frozen=True, slots=True)
class Exceeds:
    """Never: it asks for more than the whole bucket."""

    need: Need
    direction: Direction
    asked: int
    burst: int

    def error(self) -> RequestError:
        return InvalidRequest(
            f"the request may use {self.asked} {WHAT[self.direction]} and its quota allows "
            f"{self.burst} at once: ask for less",
            reason="request_exceeds_burst",
        )


Outcome = Reservation | Refusal | Exceeds
