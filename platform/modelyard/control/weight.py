"""The weight of a rollout, as control keeps it."""

from __future__ import annotations

from modelyard.config.frozen import Frozen


class Weight(Frozen):
    """Percent of conversations on a rollout's canary. A finished one never changes again."""

    percent: float
    finished: bool
    author: str
    reason: str
    at: float
