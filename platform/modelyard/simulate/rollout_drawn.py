"""Simulated requests, as production's arrays or as the records that an ingress sends."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.columns import Columns, conversation_key
from modelyard.rollout.histogram import position
from modelyard.rollout.outcome import Outcome

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Drawn:
    """A row a request. conversation: 0 for none. The last three are of what was answered only."""

    canary: Bools
    paid: Bools
    failed: Bools
    refused: Bools
    conversation: Ints
    ttft_s: Floats
    e2e_s: Floats
    tokens: Ints

    def part(self, rows: slice) -> Self:
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))

    def columns(self) -> Columns:
        answered = ~(self.failed | self.refused)
        return Columns(
            canary=self.canary,
            stratum=self.paid.astype(np.int64),
            failed=self.failed | self.refused,
            conversation=_hashed(self.conversation),
            ttft=position(np.where(answered, self.ttft_s, np.nan)),
            e2e=position(np.where(answered, self.e2e_s, np.nan)),
            log_tokens=np.where(answered, np.log1p(self.tokens), np.nan),
            refused=self.refused,
        )

    def outcomes(self, rollout: str) -> tuple[Outcome, ...]:
        return tuple(self._outcome(row, rollout) for row in range(len(self.canary)))

    def _outcome(self, row: int, rollout: str) -> Outcome:
        failed, refused = bool(self.failed[row]), bool(self.refused[row])
        answered = not failed and not refused
        conversation = int(self.conversation[row])
        return Outcome(
            rollout=rollout,
            arm="canary" if self.canary[row] else "stable",
            tier="paid" if self.paid[row] else "free",
            label="",
            conversation=_name(conversation) if conversation else "",
            code="ok" if answered else "bad_request" if refused else "upstream_failed",
            failed=failed,
            cancelled=False,
            ttft_s=float(self.ttft_s[row]) if answered else None,
            e2e_s=float(self.e2e_s[row]) if answered else None,
            output_tokens=int(self.tokens[row]) if answered else 0,
            refused=refused,
        )


def _hashed(conversation: Ints) -> Ints:
    """As Evidence knows them."""
    if not conversation.any():
        return conversation
    keys, of = np.unique(conversation, return_inverse=True)
    hashed = [conversation_key(_name(int(key))) if key else 0 for key in keys]
    result: Ints = np.array(hashed, dtype=np.int64)[of]
    return result


def _name(conversation: int) -> str:
    return f"{conversation:012x}"
