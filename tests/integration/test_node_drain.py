"""A node that leaves under streams: its replicas move, and its streams end whole."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

pytestmark = [pytest.mark.integration, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "jobs" / "streams_over_a_drain.py"
PORT = 26400
ADDRESS = f"127.0.0.1:{PORT}"
START = (str(Path(sys.executable).parent / "ray"), "start", "--block")
JOIN = ("--address", ADDRESS)
PORTS = ("node-manager", "object-manager", "runtime-env-agent")
OTHER_PORTS = ("dashboard-agent-listen", "dashboard-agent-grpc", "metrics-export")


def options(index: int, cpus: int) -> list[str]:
    """Of `ray start`: ports of this node's own, outside every other cluster's of this machine."""
    base = PORT + 100 * index
    made = [f"--num-cpus={cpus}", "--object-store-memory=80000000"]
    made += [f"--min-worker-port={base + 30}", f"--max-worker-port={base + 99}"]
    names = [f"--{name}-port" for name in (*PORTS, *OTHER_PORTS)]
    return made + [f"{name}={base + 10 + place}" for place, name in enumerate(names)]


@contextmanager
def running(*command: str, **more: object) -> Iterator[subprocess.Popen[str]]:
    """A process for as long as the body runs; its children end with it."""
    env = os.environ | {
        "RAY_AUTH_MODE": "token",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "100",
    }
    process = subprocess.Popen(command, env=env, cwd=ROOT, text=True, **more)  # type: ignore[call-overload]
    with process:
        try:
            yield process
        finally:
            end(process)


def end(process: subprocess.Popen[str]) -> None:
    """At once: told to end, each node of a cluster that is going would drain first."""
    if process.poll() is None:
        for one in [*psutil.Process(process.pid).children(True), psutil.Process(process.pid)]:
            with suppress(psutil.NoSuchProcess):
                one.kill()


def terminated(node: subprocess.Popen[str], name: str) -> None:
    node.send_signal(signal.SIGTERM)
    node.wait(timeout=180)


def drained_and_killed(node: subprocess.Popen[str], name: str) -> None:
    """As a preStop hook would, before the kill."""
    hook = [sys.executable, "-m", "cluster.node_drain", "--node-name", name, "--address", ADDRESS]
    with running(*hook, "--deadline-s", "100") as drain:
        assert drain.wait(timeout=180) == 0
        end(node)


def listens() -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", PORT), timeout=1):
        return True
    return False


@pytest.mark.parametrize("leave", [terminated, drained_and_killed])
def test_a_node_that_leaves_cuts_no_stream(
    tmp_path_factory: pytest.TempPathFactory,
    wait_for: Any,
    leave: Callable[[subprocess.Popen[str], str], None],
) -> None:
    temp = f"--temp-dir={tmp_path_factory.mktemp('r')}"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ExitStack() as stack:
        head = ["--head", f"--port={PORT}", "--include-dashboard=false", temp]
        head.append(f"--ray-client-server-port={PORT + 5}")
        stack.enter_context(running(*START, *head, *options(0, 0)))
        wait_for("the head", listens)
        leaving = stack.enter_context(running(*START, *JOIN, "--node-name=a", *options(1, 2)))
        streams = stack.enter_context(running(sys.executable, str(SCRIPT), ADDRESS, **pipes))
        assert streams.stdout is not None
        assert streams.stdin is not None
        assert "streaming\n" in iter(streams.stdout.readline, "")
        # Only now, so that every replica is on the node that leaves.
        stack.enter_context(running(*START, *JOIN, "--node-name=b", *options(2, 2)))
        leave(leaving, "a")
        streams.stdin.write("stop\n")
        streams.stdin.flush()
        record = json.loads(streams.stdout.readline())
        streams.wait(timeout=60)
    assert record["cut"] == []
    assert record["whole"] > 8
    [before] = record["first_nodes"]
    assert before not in record["last_nodes"]
