"""What the processes of a local platform find in their environment, and which code they run."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

from cluster.haproxy import write_wrapper
from cluster.ports import LocalPorts
from cluster.processes import MARK
from cluster.running import temp_dir_of
from modelyard.config.settings import Settings


def environment_of(
    settings: Settings, ports: LocalPorts, run_id: str, *, haproxy: bool
) -> dict[str, str]:
    """Of every Ray process of a run."""
    of_ray = ray_environment(ports, temp_dir_of(run_id), haproxy=haproxy)
    environment = os.environ | of_ray | {MARK: run_id}
    if haproxy:
        environment["RAY_SERVE_HAPROXY_BINARY_PATH"] = str(write_wrapper(settings.run))
    environment.pop("MODELYARD_API_KEY", None)  # an operator's, and no replica's business
    environment["MODELYARD_HOME"] = str(settings.home)
    environment["MODELYARD_SECRET_FILE"] = str(settings.secret_file)
    return environment


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
