"""What an ingress and control tell each other once a second."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.control.published import Published
from modelyard.control.usage import UsageRow
from modelyard.quota.messages import HolderReport, SplitReply
from modelyard.rollout.outcome import OutcomeBatch


@dataclass(frozen=True, slots=True)
class ControlReport:
    """quota: None from an ingress that has no table yet. usage: totals, not differences. outcomes:
    of rollouts, the batches that control has not acknowledged, oldest first."""

    ingress: str
    quota: HolderReport | None = None
    usage: tuple[UsageRow, ...] = ()
    outcomes: tuple[OutcomeBatch, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlReply:
    """quota: None when the report was late, or what it grants could not be stored. word: what the
    board carries too, for when the board is away. outcomes_taken: the number of the last batch of
    this ingress that control has."""

    epoch: int
    quota: SplitReply | None = None
    word: Published | None = None
    outcomes_taken: int = 0
