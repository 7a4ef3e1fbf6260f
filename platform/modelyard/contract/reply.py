"""What the ingress answers to a caller that came by handle."""

from __future__ import annotations

from typing import NamedTuple

from modelyard.contract.envelope import Failure, Usage

__all__ = ["Failure", "Reply", "Usage"]


class Reply(NamedTuple):
    """A whole answer, or the last item of a streamed one. What HTTP says in headers is in fields.

    `data` is the body of the operation's HTTP answer (of a stream: its last bytes). `ignored` names
    the fields of the request that nobody reads. `pin` and `pin_ignored` are X-Conversation-Pin and
    X-Conversation-Pin-Ignored, "" where HTTP would have no such header.
    """

    data: bytes
    answer_id: str
    model_version: str
    arm: str
    usage: Usage
    ignored: tuple[str, ...] = ()
    pin: str = ""
    pin_ignored: str = ""
