"""The ports of a local platform, and who holds one that is busy."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, fields
from typing import Final

import psutil

from modelyard.contract.errors import ConfigError

WORKER_PORTS: Final = range(10_002, 20_000)
DIRECT_INGRESS_PORTS: Final = 100


@dataclass(frozen=True, slots=True)
class LocalPorts:
    """Fixed ports of one local Ray head. All lie outside 10002-19999, Ray's worker range."""

    gcs: int = 6389
    dashboard: int = 8265
    dashboard_agent: int = 52365
    ray_client: int = 26379
    haproxy_metrics: int = 9101
    haproxy_stats: int = 8404
    fallback_proxy: int = 8500  # of HAProxy, while no replica of an app is there
    direct_ingress: int = 30000  # the first of a hundred that replicas choose from

    def shifted(self, offset: int) -> LocalPorts:
        """The same ports, each moved by `offset`: a second platform beside the first.

        Raises ConfigError when one would be privileged, no port, or in Ray's worker range.
        """
        moved = LocalPorts(**{f.name: getattr(self, f.name) + offset for f in fields(self)})
        ends = moved.direct_ingress, moved.direct_ingress + DIRECT_INGRESS_PORTS - 1
        for port in (*moved.fixed().values(), *ends):
            if not 1024 <= port <= 65_535 or port in WORKER_PORTS:
                raise ConfigError(
                    f"a port offset of {offset} moves a port of Ray to {port}, outside 1024-65535 "
                    "or into 10002-19999, which its workers use: choose one nearer to 0, such as "
                    "100"
                )
        return moved

    def fixed(self) -> dict[str, int]:
        """Those that must be free. Serve passes over a busy one of the direct ingress's hundred."""
        names = (f.name for f in fields(self) if f.name != "direct_ingress")
        return {name: getattr(self, name) for name in names}


def require_free(ports: dict[str, int]) -> None:
    """Raises ConfigError naming the first port that is busy or used twice, and what to do."""
    names: dict[int, str] = {}
    for name, port in ports.items():
        if port in names:
            raise ConfigError(
                f"port {port} is both {names[port]} and {name.replace('_', ' ')}: choose another "
                "http_options.port, or another --port-offset"
            )
        names[port] = name.replace("_", " ")
        if not _is_free(port):
            raise ConfigError(
                f"port {port} ({name.replace('_', ' ')}) is busy: {_holder(port)}; stop it, or "
                "start beside it with `modelyard up --port-offset 100` and a config whose "
                "http_options.port is free"
            )


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _holder(port: int) -> str:
    try:
        connections = psutil.net_connections(kind="inet")
    except psutil.AccessDenied:
        return "its holder cannot be seen, so it is another user's"
    for connection in connections:
        if connection.laddr and connection.laddr.port == port and connection.pid:
            return _describe(connection.pid)
    return "its holder cannot be seen, so it is another user's"


def _describe(pid: int) -> str:
    try:
        words = psutil.Process(pid).cmdline()
    except psutil.Error:
        return f"held by process {pid}"
    # Whole names only: "ray" is also in array.py and in /home/murray.
    if any({"ray", "raylet"} & set(re.split("[/:]", word)) for word in words):
        return f"another Ray cluster holds it (process {pid})"
    return f"held by process {pid} ({' '.join(words)[:60]})"
