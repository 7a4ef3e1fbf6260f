"""Replicas that find no place: a device that is gone, or whose memory somebody else has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from modelyard.scaling.split import CellSize, total_bounds

# A replica posts as soon as its process runs, so no load takes part of this.
UNPLACED_S: Final = 120.0
# Then a cell may be tried again: nobody tells of a machine that came back.
RETRY_S: Final = 600.0


class Unplaced:
    """Of one version: the cells that Serve fills in vain, and how many replicas each has."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._full: dict[str, tuple[int, float]] = {}

    def look(self, app: str, target: int, there: int | None, now: float) -> None:
        """there: replicas that post; None where that is not known."""
        if there is None or there >= target:
            self._since.pop(app, None)
        elif now - self._since.setdefault(app, now) >= UNPLACED_S:
            self._full[app] = there, now + RETRY_S

    def full(self, now: float) -> dict[str, int]:
        """Cells that get no more for now."""
        self._full = {app: one for app, one in self._full.items() if now < one[1]}
        return {app: there for app, (there, _) in self._full.items()}


def placeable(
    sizes: Sequence[CellSize], full: Mapping[str, int], replicas: int
) -> Sequence[CellSize]:
    """The cells with what they can hold, if `replicas` fit elsewhere; else as they are: what waits
    for a place is then all that can be done."""
    held = [
        replace(size, max=max(size.min, min(size.max, full.get(size.app, size.max))))
        for size in sizes
    ]
    return held if total_bounds(held)[1] >= replicas else sizes
