"""What became of one attempt at a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """REJECTED: the server said no on purpose, before any work: 429, 503, 529."""

    COMPLETED = "completed"
    REJECTED = "rejected"
    FAILED = "failed"
    UNFINISHED = "unfinished"  # the run was ended first


@dataclass(frozen=True, slots=True)
class Outcome:
    """Times on the runner's clock, in seconds. `gaps_s`: between the pieces of a stream's content.

    started: when the attempt was sent. first: when a stream's first piece came. code: the HTTP
    status, or a word where there is none. reason: the server's word for it, or the client's.
    message: what the server said of a failure, plain and short.
    tokens_counted: whether the server said output_tokens; else they are its pieces.
    """

    verdict: Verdict
    started: float
    ended: float
    first: float | None = None
    gaps_s: tuple[float, ...] = ()
    code: str = "200"
    reason: str = ""
    message: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    tokens_counted: bool = True
    retry_after_s: float | None = None
    retryable: bool = False
    connection_wait_s: float = 0.0
