"""The placement's part of `modelyard status`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from placement.verify import Mismatch
from placement.watched import Placement

SHOWN: Final = 20


def placement_lines(placement: Placement | None) -> list[str]:
    """One line where all is as planned; else each mismatch and each replica that waits."""
    if placement is None:
        return []
    places = f"{placement.used} of {placement.planned} places in use"
    if placement.fine:
        return [f"placement: as planned, {places}"]
    lines = [f"placement: NOT as planned, {places}"]
    lines += [f"  {one}" for one in placement.pending[:SHOWN]]
    return [*lines, *_mismatches(placement.mismatches)]


def _mismatches(found: Sequence[Mismatch]) -> list[str]:
    lines = [f"  {one}" for one in found[:SHOWN]]
    more = len(found) - SHOWN
    return [*lines, f"  and {more} more: `modelyard status -o json`"] if more > 0 else lines


def placement_record(placement: Placement | None) -> dict[str, Any]:
    """The same for `-o json`."""
    return {} if placement is None else {"placement": asdict(placement)}
