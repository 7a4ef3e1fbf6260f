"""The ports of a local platform, and who holds one that is busy."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass, fields

import psutil

from modelyard.contract.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LocalPorts:
    """Fixed ports of one local Ray head. All lie outside 10002-19999, Ray's worker range."""

    gcs: int = 6389
    dashboard: int = 8265
    dashboard_agent: int = 52365
    ray_client: int = 26379
    haproxy_metrics: int = 9101
    haproxy_stats: int = 8404
    direct_ingress: int = 30000  # the first of a hundred that replicas choose from

    def shifted(self, offset: int) -> LocalPorts:
        """The same ports, each moved by `offset`: a second platform beside the first."""
        return LocalPorts(**{f.name: getattr(self, f.name) + offset for f in fields(self)})

    def fixed(self) -> dict[str, int]:
        """Those that must be free. Serve passes over a busy one of the direct ingress's hundred."""
        names = (f.name for f in fields(self) if f.name != "direct_ingress")
        return {name: getattr(self, name) for name in names}


def require_free(ports: dict[str, int]) -> None:
    """Raises ConfigError naming the first busy port, its holder, and what to do."""
    for name, port in ports.items():
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
