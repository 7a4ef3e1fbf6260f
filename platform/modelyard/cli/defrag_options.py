"""What `modelyard plan --defrag` is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from placement.moving import Pace


@dataclass(frozen=True, slots=True)
class DefragOptions:
    """max_moves: replicas; None for SHARE_OF_A_PASS of all. at_once: moves. execute: also make the
    moves."""

    max_moves: int | None = None
    at_once: int = 1
    execute: bool = False
    pace: Pace = field(default_factory=Pace)
    as_json: bool = False


def defrag_options(
    max_moves: int | None,
    at_once: int | None,
    pause_s: float | None,
    ready_within_s: float | None,
    *,
    execute: bool,
    as_json: bool,
) -> DefragOptions:
    """None: as it is by itself."""
    pace = Pace()
    pace = replace(
        pace,
        pause_s=pace.pause_s if pause_s is None else pause_s,
        ready_within_s=pace.ready_within_s if ready_within_s is None else ready_within_s,
    )
    return DefragOptions(max_moves, at_once or 1, execute, pace, as_json)
