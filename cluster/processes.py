"""The processes of one local run: found by what marks them, stopped by PID.

Never `ray stop`: it kills every Ray process of the machine, other people's too.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from modelyard.contract.errors import ModelyardError

MARK: Final = "MODELYARD_RUN_ID"
KILLED_WITHIN_S: Final = 10.0


class WillNotStop(ModelyardError):
    """A process outlived SIGKILL."""


@dataclass(frozen=True, slots=True)
class Run:
    """What marks a run: an id in the environment, the head's session, its folder of logs.

    node_pids: the sessions of the nodes that joined the head.
    """

    run_id: str
    head_pid: int
    folder: Path
    node_pids: frozenset[int] = frozenset()

    def processes(self) -> list[psutil.Process]:
        """Every live process of the run, but for this one."""
        return [
            process
            for process in psutil.process_iter()
            if process.pid != os.getpid() and self._owns(process)
        ]

    def stop(self, patience_s: float = 10.0) -> int:
        """Ask, wait, then kill. Returns how many there were. Raises WillNotStop.

        Searched again after each round, because a supervisor may start a child while it is asked.
        """
        stopped: set[int] = set()
        asked_at = time.monotonic()
        while processes := self.processes():
            waited_s = time.monotonic() - asked_at
            if waited_s > patience_s + KILLED_WITHIN_S:
                pids = ", ".join(str(process.pid) for process in processes)
                raise WillNotStop(f"these processes do not stop, even when killed: {pids}")
            for process in processes:
                stopped.add(process.pid)
                _signal(process, kill=waited_s > patience_s)
            psutil.wait_procs(processes, timeout=1.0)
        return len(stopped)

    def _owns(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            if process.environ().get(MARK) == self.run_id:
                return True
            # Ray's agents write their title over their environment. They stay in their node's
            # session and keep its logs open; a session alone proves nothing once a pid is reused.
            sessions = {self.head_pid} | self.node_pids
            return os.getsid(process.pid) in sessions and self._has_open_files(process)
        except (psutil.Error, OSError):
            return False  # gone, or another user's: not ours either way

    def _has_open_files(self, process: psutil.Process) -> bool:
        return any(Path(file.path).is_relative_to(self.folder) for file in process.open_files())


def _signal(process: psutil.Process, *, kill: bool) -> None:
    try:
        process.kill() if kill else process.terminate()
    except psutil.Error:
        return  # it went by itself
