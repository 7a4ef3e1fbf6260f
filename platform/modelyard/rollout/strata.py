"""What kinds of request are looked at apart: tiers and declared labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from modelyard.rollout.packing import UnreadableEvidence

Floats = NDArray[np.float64]

MAX_TIERS: Final = 4  # looked at apart; those of a fifth count among all requests only
# Of the allowed false alarms, the share that all requests together may use; slices share the rest.
# A slice of 13 then needs 4 nats more (three or four failures), all requests 0.2.
POOLED: Final = 0.8


class Strata:
    """A stratum is a tier and a label; a slice is all requests, those of a tier, or of a label.

    members: 1 where a stratum (column) belongs to a slice (row). prior: of each slice, sums to 1;
    fixed by the plan, so that a tier which turns up late has had its part from the beginning.
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.tiers: list[str] = []
        self.labels: Final = ("", *(label for label in labels if label))
        self.count: Final = (MAX_TIERS + 1) * len(self.labels)
        slices = MAX_TIERS + len(self.labels)
        self.members: Final[Floats] = np.zeros((slices, self.count))
        self.prior: Final[Floats] = np.full(slices, (1 - POOLED) / (slices - 1))
        self.prior[0] = POOLED
        by_tier = self.members.reshape(slices, MAX_TIERS + 1, len(self.labels))
        by_tier[0] = 1.0
        for tier in range(MAX_TIERS):
            by_tier[1 + tier, tier, :] = 1.0
        for label in range(1, len(self.labels)):
            by_tier[MAX_TIERS + label, :, label] = 1.0

    def learn(self, tiers: Iterable[str]) -> None:
        """Sorted, so that the order within a batch decides nothing."""
        for tier in sorted(set(tiers) - set(self.tiers)):
            if len(self.tiers) < MAX_TIERS:
                self.tiers.append(tier)

    def indexes(self) -> dict[tuple[str, str], int]:
        """Of each known tier and label; see index_of for the others."""
        return {
            (tier, label): row * len(self.labels) + column
            for row, tier in enumerate(self.tiers)
            for column, label in enumerate(self.labels)
        }

    def index_of(self, tier: str, label: str) -> int:
        row = self.tiers.index(tier) if tier in self.tiers else MAX_TIERS
        return row * len(self.labels) + (self.labels.index(label) if label in self.labels else 0)

    def name(self, slice_: int) -> str:
        """As a Verdict says it: "" for all requests."""
        if slice_ == 0:
            return ""
        if slice_ <= MAX_TIERS:
            return f"tier={self.tiers[slice_ - 1]}" if slice_ <= len(self.tiers) else ""
        return f"label={self.labels[slice_ - MAX_TIERS]}"

    def state(self) -> dict[str, Any]:
        return {"tiers": self.tiers, "labels": list(self.labels)}

    def restore(self, state: dict[str, Any]) -> None:
        """Raises UnreadableEvidence."""
        tiers = state["tiers"]
        if len(tiers) > MAX_TIERS or not all(isinstance(tier, str) for tier in tiers):
            raise UnreadableEvidence("a rollout's evidence has other tiers: begin it anew")
        self.tiers[:] = tiers
