"""The phases of a rollout."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class RolloutPhase(StrEnum):
    """Pending: not begun. Shadowing: the canary gets copies only. Step: wants the next weight and
    waits for replicas. Holding: at a weight, until the evidence is there. AwaitingApproval: a human
    must look. Paused: a human stopped it from going further. The others are ends."""

    PENDING = "Pending"
    SHADOWING = "Shadowing"
    STEP = "Step"
    HOLDING = "Holding"
    AWAITING_APPROVAL = "AwaitingApproval"
    PAUSED = "Paused"
    PROMOTED = "Promoted"
    ROLLED_BACK = "RolledBack"
    ABORTED = "Aborted"


OVER: Final = frozenset({RolloutPhase.PROMOTED, RolloutPhase.ROLLED_BACK, RolloutPhase.ABORTED})
