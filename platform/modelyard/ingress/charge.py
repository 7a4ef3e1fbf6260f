"""What a request is charged when it has ended: never more than was done, never nothing for work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from modelyard.telemetry.request_log import RequestRecord

CLIENT_GONE: Final = 499  # nginx's status for a client that left; never sent, only logged

# Its caller left, or was told so after its deadline: the model had the prompt all the while.
_WORKED_ON: Final = (CLIENT_GONE, 504)


@dataclass(frozen=True, slots=True)
class Charge:
    """None: the engine never said, and what was reserved stands."""

    served: bool
    input_tokens: int | None = None
    output_tokens: int | None = 0
    cached_tokens: int = 0


def charge(record: RequestRecord) -> Charge:
    """Of a request that has ended.

    The engine's own count where the answer is whole. A stream cut short is charged by the tokens
    that were sent, and for its prompt, which the engine never counted, by the estimate; so is one
    that its caller left before the first token. A whole answer that its caller did not wait for
    costs all that was reserved: how much of it was made, nobody saw. What failed before anything
    was made is free.
    """
    if record.finish_reason:
        return Charge(True, record.input_tokens, record.output_tokens, record.cached_tokens)
    began = record.ttft_ms is not None
    left = record.attempt > 0 and record.status in _WORKED_ON and record.reason != "expired"
    if began or (left and record.stream):
        return Charge(True, None, record.output_tokens)
    if left:
        return Charge(True, None, None)
    return Charge(False, 0)
