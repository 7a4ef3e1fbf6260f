"""A local Ray head for one platform: start, find, stop."""

from __future__ import annotations

import fcntl
import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Final

import psutil

from cluster.emulated import EmulatedFleet, EmulatedNode
from cluster.head import spawn_head, wait_for_head
from cluster.local_environment import environment_of, ray_command
from cluster.node_processes import StartedNode, join_command, missing, start_together
from cluster.ports import LocalPorts, require_free
from cluster.processes import Run
from cluster.ray_token import ensure_ray_token
from cluster.running import Running, StartFailed, run_of, temp_dir_of
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError

NEEDED_MEMORY_BYTES: Final = 5 * 10**9
NEEDED_DISK_BYTES: Final = 2 * 10**9


class LocalCluster:
    """The one local cluster of an installation (of a MODELYARD_HOME)."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._state_file = settings.run / "local.json"
        self._kept_file = settings.run / "kept-logs"
        self.log_file = settings.run / "ray.log"

    def running(self) -> Running | None:
        """The head that was started, when its process still lives."""
        try:
            record = json.loads(self._state_file.read_text())
            record["ports"] = LocalPorts(**record["ports"])
            record["nodes"] = tuple(StartedNode(**node) for node in record.get("nodes", ()))
            state = Running(**record)
            alive = psutil.Process(state.pid).create_time() == state.created
        except (OSError, ValueError, TypeError, KeyError, psutil.Error):
            return None
        return state if alive else None

    def start(
        self,
        ports: LocalPorts,
        http_port: int,
        *,
        haproxy: bool,
        head: EmulatedNode | None = None,
    ) -> Running:
        """Start a head and wait until it takes deploys. Raises ConfigError or StartFailed.

        head: what it declares in an emulated fleet. Leaves nothing behind when it fails.
        """
        self.stop()  # a head that died may leave children, and their ports stay busy
        self._drop_kept_logs()
        self._require_room()
        require_free({"http": http_port} | ports.fixed())
        self._settings.ensure_secret()
        ensure_ray_token()
        run_id = secrets.token_hex(4)
        environment = environment_of(self._settings, ports, run_id, haproxy=haproxy)
        process = spawn_head(ports, run_id, head, environment, self.log_file)
        try:
            created = psutil.Process(process.pid).create_time()
            state = Running(run_id, process.pid, created, ports, http_port, haproxy)
            state = replace(state, head_place=head.place if head else None)
            self.remember(state)
            wait_for_head(process, state, self.log_file)
        except BaseException:
            run = run_of(run_id, process.pid)
            run.stop()
            self._keep_logs(run)
            self._state_file.unlink(missing_ok=True)
            raise
        return state

    def join(self, state: Running, fleet: EmulatedFleet) -> Running:
        """Start those nodes of the fleet that are not there, or not any more; remember them.

        Raises ConfigError when the head is another fleet's, StartFailed when a node does not come.
        """
        if state.head_place != fleet.head.place:
            raise ConfigError(
                "the platform that runs was started for another fleet, or for none, and its head "
                "cannot change while it runs: run `make down` first"
            )
        absent = missing(fleet.nodes, state.nodes)
        environment = environment_of(
            self._settings, state.ports, state.run_id, haproxy=state.haproxy
        )
        logs = self.log_file.parent
        started = start_together(
            absent,
            join_command(ray_command("ray"), state.address),
            environment,
            temp_dir=temp_dir_of(state.run_id),
            logs=logs,
        )
        names = {node.place for node in absent}
        kept = tuple(node for node in state.nodes if node.place not in names)
        joined = replace(state, nodes=(*kept, *started))
        self.remember(joined)
        if lost := names - {node.place for node in started}:
            raise StartFailed(f"no raylet came up for {', '.join(sorted(lost))}: see {logs}")
        return joined

    def stop(self, *, keep_logs: bool = False) -> int:
        """Stop what `start` started and forget it, whatever is left of it.

        Returns the number of processes stopped. The logs stay when they may explain a failure.
        """
        run = self._last_run()
        if run is None:
            return 0
        count = run.stop()
        if keep_logs:
            self._keep_logs(run)
        else:
            shutil.rmtree(run.folder, ignore_errors=True)
        self._state_file.unlink(missing_ok=True)
        return count

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold this installation's lock. Raises ConfigError when another command holds it."""
        self._settings.run.mkdir(parents=True, exist_ok=True)
        with (self._settings.run / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ConfigError(
                    f"another `modelyard up` or `down` is at work in {self._settings.home}: wait "
                    "for it, or set MODELYARD_HOME to another folder"
                ) from error
            yield

    def remember(self, state: Running) -> None:
        self._state_file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._state_file.with_suffix(".new")
        temporary.write_text(json.dumps(asdict(state)))
        temporary.replace(self._state_file)

    def _keep_logs(self, run: Run) -> None:
        """Leave a failed run's logs until the next start."""
        self._kept_file.parent.mkdir(parents=True, exist_ok=True)
        with self._kept_file.open("a") as kept:
            kept.write(f"{run.folder}\n")

    def _drop_kept_logs(self) -> None:
        if self._kept_file.exists():
            for line in self._kept_file.read_text().splitlines():
                shutil.rmtree(line, ignore_errors=True)
            self._kept_file.unlink()

    def _last_run(self) -> Run | None:
        try:
            record = json.loads(self._state_file.read_text())
            run_id, pid = str(record["run_id"]), int(record["pid"])
            return run_of(
                run_id, pid, frozenset(node["session"] for node in record.get("nodes", ()))
            )
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _require_room(self) -> None:
        free_bytes = psutil.virtual_memory().available
        if free_bytes < NEEDED_MEMORY_BYTES:
            raise ConfigError(
                f"{free_bytes / 1e9:.1f} GB of memory are free, the four starter models need "
                f"{NEEDED_MEMORY_BYTES / 1e9:.0f} GB: close other programs"
            )
        self._settings.home.mkdir(parents=True, exist_ok=True)
        disk_bytes = psutil.disk_usage(str(self._settings.home)).free
        if disk_bytes < NEEDED_DISK_BYTES:
            raise ConfigError(
                f"{disk_bytes / 1e9:.1f} GB of disk are free at {self._settings.home}, "
                f"{NEEDED_DISK_BYTES / 1e9:.0f} GB are needed: make room, or set MODELYARD_HOME"
            )
