"""The nodes that join a local head: started, looked for, and started again."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from cluster.emulated import EmulatedNode

JOINED_WITHIN_S: Final = 180.0  # seconds on an idle machine; many at once on a busy one, minutes
OBJECT_STORE_BYTES: Final = 80 * 1000 * 1000  # Ray takes no less than 75 MiB
_OF_DEVICES: Final = frozenset({"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"})
# Ray's fixed defaults are the head's; 0 has it choose a port that is free.
_PORTS: Final = (
    "--min-worker-port=0",
    "--max-worker-port=0",
    "--dashboard-agent-listen-port=0",
    "--dashboard-agent-grpc-port=0",
    "--runtime-env-agent-port=0",
    "--metrics-export-port=0",
)


@dataclass(frozen=True, slots=True)
class StartedNode:
    """session: of the node's processes. raylet: its pid; kill -9 of it is the loss of the node, its
    replicas go with it. created: of the raylet, which tells it from a later process of that pid.
    folder: the node's own, with the logs of its replicas.
    """

    place: str
    session: int
    raylet: int
    created: float
    folder: str

    @property
    def alive(self) -> bool:
        try:
            raylet = psutil.Process(self.raylet)
            dead = raylet.status() == psutil.STATUS_ZOMBIE
            return not dead and raylet.create_time() == self.created
        except psutil.Error:
            return False


def missing(
    wanted: Iterable[EmulatedNode], started: Iterable[StartedNode]
) -> tuple[EmulatedNode, ...]:
    """Those that have no live raylet."""
    alive = {node.place for node in started if node.alive}
    return tuple(node for node in wanted if node.place not in alive)


def start_together(
    nodes: Sequence[EmulatedNode],
    join: Sequence[str],
    environment: Mapping[str, str],
    *,
    temp_dir: Path,
    logs: Path,
    within_s: float = JOINED_WITHIN_S,
) -> tuple[StartedNode, ...]:
    """Start them at once and wait for all. A node that did not come is not in the answer, and
    nothing of it runs: one that joined later would stand beside its next start, with its place.

    join: `ray start`, and which head. environment: as the head's. temp_dir: of the run. logs: where
    each start is logged. within_s: for all of them together.
    """
    plain = without_devices(environment)
    # Each in a folder of its own: raylets that start at once in one choose the same socket, and all
    # but one abort. A number, because a socket's path is short; never one that was in use.
    first = 1 + max((_number(path) for path in temp_dir.glob("n[0-9]*")), default=0)
    started: list[tuple[str, Path, subprocess.Popen[bytes]]] = []
    found: list[StartedNode] = []
    until = time.monotonic() + within_s
    try:
        for number, node in enumerate(nodes, start=first):
            folder = temp_dir / f"n{number}"
            folder.mkdir()
            command = [*join, *_PORTS, *node.options(), f"--temp-dir={folder}"]
            log = logs / f"ray-{node.place}.log"
            process = _spawn(command, plain | node.environment(), log)
            started.append((node.place, folder, process))
        for place, folder, process in started:
            left_s = max(0.0, until - time.monotonic())
            if (one := _joined(place, folder, process, left_s)) is not None:
                found.append(one)
    except BaseException:  # nobody will know of those that came, either
        found = []
        raise
    finally:
        joined = {node.session for node in found}
        _end([process for _, _, process in started if process.pid not in joined])
    return tuple(found)


def without_devices(environment: Mapping[str, str]) -> dict[str, str]:
    """Ray refuses to declare more devices than these variables name."""
    return {name: value for name, value in environment.items() if name not in _OF_DEVICES}


def join_command(ray: str, gcs_address: str) -> list[str]:
    """Without --block: a supervisor would be a process of 200 MB a node, and hide its end."""
    return [
        ray,
        "start",
        "--disable-usage-stats",
        f"--address={gcs_address}",
        "--node-ip-address=127.0.0.1",
        f"--object-store-memory={OBJECT_STORE_BYTES}",
        # One log monitor a machine: the head's.
        "--include-log-monitor=false",
    ]


def _number(path: Path) -> int:
    return int(path.name[1:])


def _spawn(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _joined(
    place: str, folder: Path, process: subprocess.Popen[bytes], within_s: float
) -> StartedNode | None:
    """None when `ray start` failed, or is not done in time."""
    try:
        if process.wait(within_s) != 0:
            return None
    except subprocess.TimeoutExpired:
        return None
    for one in _session(process.pid):
        with contextlib.suppress(psutil.Error):  # it ended while we looked
            if one.name() == "raylet":
                return StartedNode(place, process.pid, one.pid, one.create_time(), str(folder))
    return None


def _end(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Each with its whole session: the raylet outlives the `ray start` that made it."""
    for process in processes:
        for one in _session(process.pid):
            with contextlib.suppress(psutil.Error):
                one.kill()
        process.wait()


def _session(leader: int) -> Iterator[psutil.Process]:
    for one in psutil.process_iter():
        with contextlib.suppress(OSError):
            if os.getsid(one.pid) == leader:
                yield one
