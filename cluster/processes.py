"""The processes of one local run: found by a mark in their environment, stopped by PID.

Never `ray stop`: it kills every Ray process of the machine, other people's too.
"""

from __future__ import annotations

import time
from typing import Final

import psutil

MARK: Final = "MODELYARD_RUN_ID"


def of_run(run_id: str) -> list[psutil.Process]:
    """Every live process that inherited the mark, but for this one."""
    found = []
    for process in psutil.process_iter(["pid"]):
        try:
            if process.environ().get(MARK) == run_id and process.pid != psutil.Process().pid:
                found.append(process)
        except psutil.Error:
            continue  # gone, or another user's: not ours either way
    return found


def stop_run(run_id: str, patience_s: float = 10.0) -> int:
    """Stop all processes of a run: ask, wait, then kill. Returns how many there were.

    Searched again after each round, because a supervisor may start a child while it is asked.
    """
    stopped: set[int] = set()
    deadline = time.monotonic() + patience_s
    while processes := of_run(run_id):
        late = time.monotonic() >= deadline
        for process in processes:
            stopped.add(process.pid)
            try:
                process.kill() if late else process.terminate()
            except psutil.Error:
                continue
        psutil.wait_procs(processes, timeout=1.0)
    return len(stopped)
