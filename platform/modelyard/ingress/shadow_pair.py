"""A request and the copy of it that the candidate answers: what each did, as one pair."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Final, TypeVar

from modelyard.contract.envelope import Item
from modelyard.contract.operations import Operation
from modelyard.ingress.charge import CLIENT_GONE
from modelyard.ingress.outcomes import CONVERSATION_DIGITS
from modelyard.ingress.prepared import Prepared
from modelyard.ingress.shadow_match import same
from modelyard.rollout.outcome import Outcome, OutcomeArm
from modelyard.telemetry.request_log import RequestRecord

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 1024 * 1024  # that are kept to be compared
ON_A_THREAD_BYTES: Final = 64 * 1024
EXPIRED: Final = "expired"  # a deadline that passed before the model began


class Side:
    """One of the two. Its times run from its dispatch: the copy waits in the lowest band, and the
    request behind other users, which says nothing of either version."""

    def __init__(self, prepared: Prepared, now: float) -> None:
        self.prepared = prepared
        self._began = now
        self._first_at: float | None = None
        self._ended_at = now
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def record(self) -> RequestRecord:
        return self.prepared.record

    @property
    def answered(self) -> bool:
        return self.record.status == 200

    @property
    def refused(self) -> bool:
        """By its replica, as wrong."""
        return bool(self.record.refused_by)

    @property
    def shed(self) -> bool:
        """For want of room or time before any work: this tells how full it was, and shadow traffic
        is what gives way. Of both sides, or what fills up would count for one alone."""
        record = self.record
        return record.status == 503 or (record.status == 504 and record.reason == EXPIRED)

    @property
    def answer(self) -> bytes | None:
        """None: too long to be kept."""
        return b"".join(self._parts) if self._size <= MAX_ANSWER_BYTES else None

    def take(self, item: Item, now: float) -> None:
        if self._first_at is None:
            self._first_at = now
        self._ended_at = now
        self._size += len(item.data)
        if self._size <= MAX_ANSWER_BYTES:
            self._parts.append(item.data)
        else:
            self._parts.clear()

    def outcome(
        self, arm: OutcomeArm, rollout: str, pair: str, match: bool | None = None
    ) -> Outcome:
        record, first_at = self.record, self._first_at
        return Outcome(
            rollout=rollout,
            arm=arm,
            tier=record.tier,
            label=record.label,
            conversation=record.conversation[:CONVERSATION_DIGITS],
            code=record.code,
            failed=record.status >= 500,
            cancelled=record.status == CLIENT_GONE,
            ttft_s=None if first_at is None or not record.stream else first_at - self._began,
            e2e_s=self._ended_at - self._began if self.answered else None,
            output_tokens=record.output_tokens,
            pair=pair,
            match=match,
            refused=self.refused,
        )


async def match_of(original: Side, copy: Side) -> bool | None:
    """Whether both answered the same; None where nobody can say."""
    one, other, prepared = original.answer, copy.answer, original.prepared
    if not (original.answered and copy.answered) or one is None or other is None:
        return None
    size_bytes = len(prepared.work.encoded) + len(one) + len(other)
    return await at_ease(size_bytes, lambda: _match(prepared, one, other))


async def at_ease(size_bytes: int, read: Callable[[], T]) -> T:
    """Read so many bytes of JSON: on a thread where it would hold up the loop."""
    return read() if size_bytes <= ON_A_THREAD_BYTES else await asyncio.to_thread(read)


def _match(prepared: Prepared, one: bytes, other: bytes) -> bool | None:
    operation = Operation(prepared.envelope.operation)
    greedy = json.loads(prepared.work.encoded).get("temperature") == 0
    return same(operation, one, other, stream=prepared.work.stream, greedy=greedy)
