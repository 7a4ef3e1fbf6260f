"""Where one ingress replica listens, behind HAProxy."""

from __future__ import annotations

import httpx
import psutil
import pytest


def port_of(ingress: psutil.Process) -> int:
    """The one on which it answers our probes."""
    for connection in ingress.net_connections(kind="tcp"):
        if connection.status == psutil.CONN_LISTEN and is_ours(connection.laddr.port):
            return int(connection.laddr.port)
    pytest.fail(f"{ingress} listens nowhere")


def is_ours(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/health/live", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
