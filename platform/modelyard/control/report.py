"""What an ingress and control tell each other once a second."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.control.published import Published
from modelyard.control.usage import UsageRow
from modelyard.quota.messages import HolderReport, SplitReply


@dataclass(frozen=True, slots=True)
class ControlReport:
    """quota: None from an ingress that has no table yet. usage: totals, not differences."""

    ingress: str
    quota: HolderReport | None = None
    usage: tuple[UsageRow, ...] = ()


@dataclass(frozen=True, slots=True)
class ControlReply:
    """quota: None when the report was late, or what it grants could not be stored. word: what the
    board carries too, for when the board is away."""

    epoch: int
    quota: SplitReply | None = None
    word: Published | None = None
