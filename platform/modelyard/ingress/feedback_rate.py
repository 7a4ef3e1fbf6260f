"""How much feedback a tenant may give."""

from __future__ import annotations

from typing import Final

from modelyard.contract.errors import RateLimited

MINUTE_S: Final = 60.0
# Users have a word on few answers: five a second is far above that, and what one tenant gives in
# one second (all of it) is less than a third of the room that a batch has for feedback.
PER_MINUTE: Final = 300


class FeedbackRate:
    """Of one ingress: PER_MINUTE by each tenant. Remembers nobody for longer than a minute."""

    def __init__(self) -> None:
        self._until = 0.0
        self._given: dict[str, int] = {}

    def count(self, tenant: str, now: float) -> None:
        """Count a word of a tenant. Raises RateLimited, with the time to the minute's end."""
        if now >= self._until:
            self._until, self._given = now + MINUTE_S, {}
        given = self._given.get(tenant, 0)
        if given >= PER_MINUTE:
            raise RateLimited(
                f"more than {PER_MINUTE} words of feedback in a minute: send it again later",
                reason="feedback_rate",
                retry_after_s=self._until - now,
            )
        self._given[tenant] = given + 1
