"""Why a replica left: what the restart counter is kept by."""

from __future__ import annotations

from enum import StrEnum


class Cause(StrEnum):
    """`start_failed`: a phase before ready failed, or its process ended in one. `crashed`: the
    process of a ready one ended without a word.
    `stalled`: busy without progress. `device_fault`: its accelerator reported an error that
    needs the node repaired. `drained`: an operator told it to leave.
    """

    START_FAILED = "start_failed"
    CRASHED = "crashed"
    STALLED = "stalled"
    DEVICE_FAULT = "device_fault"
    DRAINED = "drained"
