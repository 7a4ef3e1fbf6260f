"""What metrics show of the rollouts: made once a second on the loop, read on a scrape's thread."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.rollout.record import RolloutRecord
from modelyard.rollout.verdict import Verdict


@dataclass(frozen=True, slots=True)
class RolloutsShown:
    """outcomes: (alias, arm, kind) and how many requests since this control began."""

    rollouts: tuple[tuple[RolloutRecord, tuple[Verdict, ...]], ...] = ()
    outcomes: tuple[tuple[tuple[str, str, str], float], ...] = ()
