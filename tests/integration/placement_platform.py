"""An emulated fleet that is planned, deployed, and asked, through the command and HTTP alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from cluster.local import LocalCluster
from cluster.running import run_of
from modelyard.config.demo import DEMO_KEY, OPS_KEY
from modelyard.config.settings import Settings
from tests.integration.placement_fleet import STREAM_TOKENS

MODELYARD = Path(sys.executable).parent / "modelyard"


@dataclass(frozen=True)
class EmulatedPlatform:
    """serve: the Serve config that keeps the placement. fleet: what it is planned from."""

    home: Path
    url: str
    fleet: Path
    serve: Path

    def run(self, *arguments: str, within_s: float = 900) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(MODELYARD), *arguments],
            env=os.environ | {"MODELYARD_HOME": str(self.home), "MODELYARD_API_KEY": OPS_KEY},
            capture_output=True,
            text=True,
            check=False,
            timeout=within_s,
        )

    def done(self, *arguments: str) -> str:
        """The same where nothing may go wrong."""
        made = self.run(*arguments)
        assert made.returncode == 0, f"{arguments}\n{made.stdout[-3000:]}\n{made.stderr[-3000:]}"
        return made.stdout

    def plan(self, *options: str, fleet: Path | None = None) -> str:
        return self.done("plan", str(fleet or self.fleet), "-o", str(self.serve), *options)

    def deploy(self, *options: str) -> None:
        self.done("up", "--config", str(self.serve), *options)

    def status(self) -> Mapping[str, Any]:
        made = self.run("status", "-o", "json")
        record: dict[str, Any] = json.loads(made.stdout)
        return record

    def pids(self) -> dict[str, frozenset[int]]:
        """Of ready replicas, by app; without the apps that have none, which Serve takes away."""
        found = {
            app["name"]: frozenset(one["pid"] for one in app["replicas"] if one["phase"] == "Ready")
            for app in self.status()["apps"]
            if "@" in app["name"]
        }
        return {app: pids for app, pids in found.items() if pids}

    def kill_node(self, place: str) -> None:
        """As the loss of a machine: its raylet and all its replicas at once."""
        running = LocalCluster(Settings(self.home, self.home / "secret")).running()
        assert running is not None
        [node] = [one for one in running.nodes if one.place == place]
        os.kill(node.raylet, signal.SIGKILL)

    def let_starts_go_first(self) -> None:
        """The engines that are there give way: on two cores of this machine, four of them under
        load starve a fifth that starts, which in a fleet has a machine of its own."""
        running = LocalCluster(Settings(self.home, self.home / "secret")).running()
        assert running is not None
        for process in run_of(running.run_id, running.pid).processes():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if process.name().startswith("VLLM"):
                    for thread in process.threads():  # each has a niceness of its own
                        os.setpriority(os.PRIO_PROCESS, thread.id, 15)

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {DEMO_KEY}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=300.0)


@dataclass(frozen=True, slots=True)
class Sent:
    """A stream as its caller saw it. fault: "" for one that came whole."""

    alias: str
    began: float
    seconds: float
    fault: str


class Streams:
    """So many callers of each alias, each of whom starts a stream when the last one has ended."""

    def __init__(self, platform: EmulatedPlatform, callers: Mapping[str, int]) -> None:
        self.platform = platform
        self.sent: list[Sent] = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._call, args=(alias,))
            for alias, count in callers.items()
            for _ in range(count)
        ]

    @contextmanager
    def flowing(self) -> Iterator[None]:
        """While the body runs. Those under way at its end are heard to theirs."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def _call(self, alias: str) -> None:
        with self.platform.client() as client:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    fault = _one(client, alias)
                except httpx.HTTPError as error:
                    fault = repr(error)
                with self._lock:
                    self.sent.append(Sent(alias, began, time.monotonic() - began, fault))


def _one(client: httpx.Client, alias: str) -> str:
    body = {
        "model": alias,
        "messages": [{"role": "user", "content": f"Tell me a long story, {time.monotonic_ns()}"}],
        "max_tokens": STREAM_TOKENS,
        "ignore_eos": True,
        "stream": True,
    }
    last = ""
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        if answer.status_code != 200:
            return f"{answer.status_code} {answer.read().decode()}"
        for line in answer.iter_lines():
            if line.startswith("data: {") and '"error"' in line:
                return line
            last = line or last
    return "" if last == "data: [DONE]" else f"ended without [DONE]: {last}"
