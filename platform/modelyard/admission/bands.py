"""Bands of priority: a request of a lower band never starts while a higher one waits."""

from __future__ import annotations

from typing import Final

BANDS: Final = ("interactive", "batch", "shadow")  # highest first
_RANKS: Final = {band: rank for rank, band in enumerate(BANDS)}
LAST: Final = len(BANDS) - 1


def rank(band: str) -> int:
    """0 for the highest. A band that nobody knows is served last."""
    return _RANKS.get(band, LAST)
