"""A lower output cap for work that was prepared with a higher one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from modelyard.contract.operations import Operation
from modelyard.ingress.work import ENGINE_CAPS, Work

_CAPS: Final = ENGINE_CAPS | {Operation.GENERATE: "max_output_tokens"}


def capped(work: Work, operation: Operation, cap_tokens: int) -> Work:
    """The same work with at most `cap_tokens` in each answer, itself where it asks for no more.

    Not made anew from the caller's body: make_work refuses a cap above the limit, and this caller's
    was within it.
    """
    if cap_tokens >= work.cap_tokens:
        return work
    body = json.loads(work.encoded) | {_CAPS[operation]: cap_tokens}
    encoded = json.dumps(body, ensure_ascii=False).encode()
    return replace(work, encoded=encoded, cap_tokens=cap_tokens)
