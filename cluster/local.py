"""A local Ray head for one platform: start, find, stop."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import httpx
import psutil

from cluster.haproxy import write_wrapper
from cluster.ports import LocalPorts, require_free
from cluster.processes import MARK, Run
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError, ModelyardError

NEEDED_MEMORY_BYTES: Final = 5 * 10**9
NEEDED_DISK_BYTES: Final = 2 * 10**9
OBJECT_STORE_BYTES: Final = 256 * 1024 * 1024
# Twice what configs/local.serve.yaml asks for and more: of all that is redeployed at once, the new
# replicas start before the old ones stop. Ray counts, it does not pin.
LOGICAL_CPUS: Final = 8
START_WITHIN_S: Final = 180.0  # seconds on an idle machine; a busy one needs minutes


class StartFailed(ModelyardError):
    """The local cluster did not come up. The text says which step and where its log is."""


@dataclass(frozen=True, slots=True)
class Running:
    """A started head: what `down`, `status` and the next `up` need to know of it."""

    run_id: str
    pid: int
    created: float
    ports: LocalPorts
    http_port: int
    haproxy: bool
    config_digest: str = ""
    code_digest: str = ""

    @property
    def dashboard_url(self) -> str:
        return f"http://127.0.0.1:{self.ports.dashboard}"

    @property
    def logs(self) -> Path:
        """Where Ray and Serve log; each replica has a file under `serve`."""
        return temp_dir_of(self.run_id) / "session_latest" / "logs"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports.gcs}"


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
            state = Running(**record)
            alive = psutil.Process(state.pid).create_time() == state.created
        except (OSError, ValueError, TypeError, KeyError, psutil.Error):
            return None
        return state if alive else None

    def start(self, ports: LocalPorts, http_port: int, *, haproxy: bool) -> Running:
        """Start a head and wait until it takes deploys. Raises ConfigError or StartFailed.

        Leaves nothing behind when it fails.
        """
        self.stop()  # a head that died may leave children, and their ports stay busy
        self._drop_kept_logs()
        self._require_room()
        require_free({"http": http_port} | ports.fixed())
        self._settings.ensure_secret()
        _ensure_ray_token()
        run_id = secrets.token_hex(4)
        process = self._spawn(ports, run_id, haproxy=haproxy)
        try:
            created = psutil.Process(process.pid).create_time()
            state = Running(run_id, process.pid, created, ports, http_port, haproxy)
            self.remember(state)
            self._wait(process, state)
        except BaseException:
            run = run_of(run_id, process.pid)
            run.stop()
            self._keep_logs(run)
            self._state_file.unlink(missing_ok=True)
            raise
        return state

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
            return run_of(str(record["run_id"]), int(record["pid"]))
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

    def _spawn(self, ports: LocalPorts, run_id: str, *, haproxy: bool) -> subprocess.Popen[bytes]:
        temp_dir = temp_dir_of(run_id)
        command = [
            ray_command("ray"),
            "start",
            "--head",
            "--block",
            "--disable-usage-stats",
            "--node-ip-address=127.0.0.1",
            f"--temp-dir={temp_dir}",
            f"--num-cpus={LOGICAL_CPUS}",
            f"--object-store-memory={OBJECT_STORE_BYTES}",
            f"--port={ports.gcs}",
            f"--ray-client-server-port={ports.ray_client}",
            "--include-dashboard=true",
            "--dashboard-host=127.0.0.1",
            f"--dashboard-port={ports.dashboard}",
            f"--dashboard-agent-listen-port={ports.dashboard_agent}",
        ]
        environment = (
            os.environ | ray_environment(ports, temp_dir, haproxy=haproxy) | {MARK: run_id}
        )
        if haproxy:
            environment["RAY_SERVE_HAPROXY_BINARY_PATH"] = str(write_wrapper(self._settings.run))
        environment.pop("MODELYARD_API_KEY", None)  # an operator's, and no replica's business
        environment["MODELYARD_HOME"] = str(self._settings.home)
        environment["MODELYARD_SECRET_FILE"] = str(self._settings.secret_file)
        self.log_file.parent.mkdir(parents=True, exist_ok=True)
        with self.log_file.open("wb") as log:
            return subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait(self, process: subprocess.Popen[bytes], state: Running) -> None:
        deadline = time.monotonic() + START_WITHIN_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise StartFailed(
                    f"`ray start` ended with status {process.returncode}: see {self.log_file}"
                )
            if serve_api_answers(state):
                return
            time.sleep(0.25)
        raise StartFailed(
            f"the Ray head did not answer within {START_WITHIN_S:.0f} s: see {self.log_file}"
        )


def run_of(run_id: str, head_pid: int) -> Run:
    return Run(run_id, head_pid, temp_dir_of(run_id))


def temp_dir_of(run_id: str) -> Path:
    """Ray's and HAProxy's folder of a run: their logs and sockets.

    Under /tmp and short, because a socket's path is limited to 97 characters for HAProxy, of which
    Serve takes 68 for the node's id and the file's name.
    """
    return Path("/tmp") / f"modelyard-{run_id}"


def ray_environment(ports: LocalPorts, folder: Path, *, haproxy: bool) -> dict[str, str]:
    """What every Ray process of the cluster must find in its environment, the controller too."""
    environment = {
        "RAY_AUTH_MODE": "token",  # said outright: a token file alone would turn it on half-way
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": "1",
        "RAY_worker_niceness": "0",  # Ray's default of 15 starves replicas beside anything else
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",  # replicas without a GPU must see none
        "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": str(ports.direct_ingress),
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(ports.direct_ingress + 99),
    }
    if not haproxy:
        return environment
    return environment | {
        "RAY_SERVE_ENABLE_HA_PROXY": "1",
        # Three failed checks replace a dead HAProxy: after 6 s of nobody answering, not after 30.
        "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S": "2",
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S": "30",  # on a busy machine 5 s kill it as it starts
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(ports.haproxy_metrics),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(ports.haproxy_stats),
        "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": str(ports.fallback_proxy),
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(folder / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(folder / "admin.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(folder / "metrics.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(folder),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(folder / "server-state"),
    }


def code_digest() -> str:
    """sha256 over the source that replicas run: they keep what they loaded when they started."""
    digest = hashlib.sha256()
    for package in ("modelyard", "deployments", "cluster"):
        spec = importlib.util.find_spec(package)
        for folder in (spec and spec.submodule_search_locations) or ():
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def ray_command(name: str) -> str:
    """A console script of the environment this process runs in, whatever PATH says."""
    return str(Path(sys.executable).parent / name)


def ray_token() -> str:
    """Ray's cluster token. Raises StartFailed when there is none."""
    try:
        return _token_file().read_text().strip()
    except OSError as error:
        raise StartFailed(f"cannot read Ray's token {_token_file()}: run `modelyard up`") from error


def serve_api_answers(state: Running) -> bool:
    """Whether the head's dashboard takes Serve calls."""
    try:
        answer = httpx.get(
            f"{state.dashboard_url}/api/serve/applications/",
            headers={"Authorization": f"Bearer {ray_token()}"},
            timeout=5.0,
        )
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


def _token_file() -> Path:
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()


def _ensure_ray_token() -> None:
    if _token_file().exists():
        return
    done = subprocess.run(
        [ray_command("ray"), "get-auth-token", "--generate"],
        env=os.environ | {"RAY_AUTH_MODE": "token"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise StartFailed(f"could not make Ray's token: {done.stderr.strip()[-300:]}")
    _token_file().chmod(0o600)  # Ray leaves it readable by everybody
