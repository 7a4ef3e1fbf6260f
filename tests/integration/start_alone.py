"""A replica's start without Serve, in a process of its own: `start_alone.py FOLDER`, in a
MODELYARD_HOME of its own.

It is the platform's own `started`; only who the replica is and the board are this script's. Prints
the last post: the phase that the start came to, and the cause when it failed there.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from deployments.record import opened
from deployments.replica import Place
from deployments.reporter import Reporter
from deployments.start import started
from modelyard.artifacts.manifest import read_manifest
from modelyard.config.settings import Settings
from modelyard.contract.errors import StartError
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport


class Replica:
    """As Serve would describe it."""

    replica, node, slots, draining = "alone", "here", 4, False
    gpu_ids: tuple[str, ...] = ()

    def __init__(self, app: str, drain_s: float) -> None:
        self.app, self.drain_s = app, drain_s
        self.place = Place.of_process()


class Board:
    def __init__(self) -> None:
        self.last: ReplicaReport | None = None

    def post(self, report: ReplicaReport) -> None:
        self.last = report

    def confirm_blocking(self, report: ReplicaReport, timeout_s: float) -> None:
        self.last = report


async def start(folder: Path) -> tuple[Phase, str]:
    Settings.from_environment().ensure_secret()
    manifest = read_manifest(folder)
    replica: Any = Replica(manifest.full_name, manifest.limits.drain_s)
    board = Board()
    reporter = Reporter(replica, board, lambda: 0)  # type: ignore[arg-type]
    try:
        await started(opened(folder, manifest), replica, reporter)
    except StartError:
        assert board.last is not None
        assert board.last.phase is Phase.FAILED
        return board.last.phases[-1][0], board.last.cause or ""
    assert board.last is not None
    return board.last.phase, ""


if __name__ == "__main__":
    print(json.dumps(asyncio.run(start(Path(sys.argv[1])))))
