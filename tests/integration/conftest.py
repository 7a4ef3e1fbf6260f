"""A real platform for the integration tests: `modelyard up`, in a home and on ports of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import openai
import psutil
import pytest
import yaml

from cluster.board import Board
from cluster.local import LocalCluster
from cluster.observe import ReplicaView, connected, read_apps
from cluster.running import run_of
from modelyard.config.demo import DEMO_KEY
from modelyard.config.settings import Settings
from modelyard.lifecycle.phases import Phase
from modelyard.tenancy.keys import hash_key

CONFIG = Path(__file__).parents[2] / "configs" / "local.serve.yaml"
MODELYARD = Path(sys.executable).parent / "modelyard"
# Of tenants that only the tests' configuration has.
TEST_KEYS = {
    name: f"my_{name}-1_for-tests-of-modelyard"
    for name in ("metered", "capped", "shadowed", "abroad")
}
INGRESS_TITLE = "ServeReplica:ingress:Ingress"
STALL_AFTER_S = 25  # above the 15 s of idle_s, with time to see the stream's end


@dataclass(frozen=True)
class Platform:
    """A running platform and how to reach it."""

    url: str
    home: Path
    config: Path
    port_offset: int
    board: Board = field(default_factory=Board)

    def client(self, key: str | None = DEMO_KEY, **options: Any) -> httpx.Client:
        headers = options.pop("headers", {})
        if key:
            headers = headers | {"Authorization": f"Bearer {key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60.0, **options)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the `modelyard` command in this platform's home."""
        return subprocess.run(
            [str(MODELYARD), *arguments],
            env=os.environ | {"MODELYARD_HOME": str(self.home)},
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )

    def replica(self, app: str) -> ReplicaView:
        """The one ready replica of an app, as `modelyard status` would show it."""
        [found] = [view for view in read_apps(self.board) if view.name == app]
        ready = [replica for replica in found.replicas if replica.phase is Phase.READY]
        assert len(ready) == 1, found
        return ready[0]

    def ingresses(self) -> list[psutil.Process]:
        """The processes of the ingress replicas, the oldest first."""
        state = json.loads((self.home / "run" / "local.json").read_text())
        found = [
            process
            for process in run_of(state["run_id"], state["pid"]).processes()
            if carries(process, INGRESS_TITLE)
        ]
        return sorted(found, key=lambda process: process.create_time())

    def log_of(self, request_id: str) -> list[dict[str, Any]]:
        """The request log's lines of a request."""
        lines = [
            json.loads(line)
            for path in (self.home / "logs").glob("requests-*.jsonl")
            for line in path.read_text().splitlines()
        ]
        return [line for line in lines if line["request_id"] == request_id]


def carries(process: psutil.Process, title: str) -> bool:
    try:
        return title in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it ended while we looked
        return False


WaitFor = Callable[[str, Callable[[], Any]], Any]


@pytest.fixture(scope="session")
def wait_for() -> WaitFor:
    """Look until something true comes back; a bound of two minutes only ends a hung test."""

    def wait(what: str, look: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if found := look():
                return found
            time.sleep(0.1)
        pytest.fail(f"never saw {what}")

    return wait


@pytest.fixture(scope="session")
def platform(starter_models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """HAProxy mode: the configuration of the README but for the port and the quotas."""
    home = tmp_path_factory.mktemp("platform")
    with started(home, starter_models, 200, config_text=tests_config()) as made:
        running = LocalCluster(Settings(home, home / "secret")).running()
        assert running is not None
        # Joined once: a driver's start takes seconds of these two cores.
        with connected(running):
            yield made


@pytest.fixture(scope="session")
def test_keys() -> dict[str, str]:
    """Keys of the tenants that only the tests' configuration has, by tenant."""
    return TEST_KEYS


@pytest.fixture(scope="session")
def openai_client(platform: Platform) -> openai.OpenAI:
    """Without retries of its own: a test must see what was answered, once."""
    return openai.OpenAI(base_url=f"{platform.url}/v1", api_key=DEMO_KEY, max_retries=0)


@pytest.fixture(scope="module")
def plain_platform(
    starter_models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Platform]:
    """The same with Ray's own Python proxy."""
    home = tmp_path_factory.mktemp("plain")
    with started(home, starter_models, 300, "--plain-proxy") as made:
        yield made


@pytest.fixture(scope="session")
def start_platform(
    starter_models: Path,
) -> Callable[[Path, int, str], AbstractContextManager[Platform]]:
    """For a test that needs a platform of its own: its home, its port offset and its config."""

    def start(home: Path, offset: int, config_text: str) -> AbstractContextManager[Platform]:
        return started(home, starter_models, offset, config_text=config_text)

    return start


def tests_config() -> str:
    """The shipped configuration, in which `demo` may use more than any test asks for, so that every
    request is metered and none refused, and tenants of the tests' own may use little.

    A generator is stalled later than a silent stream is broken off: tests pause it for that long.
    """
    record = yaml.safe_load(CONFIG.read_text())
    for application in record["applications"]:
        if application["import_path"] == "deployments.generator:app":
            application["args"]["watchdog"] = {"stall_after_s": STALL_AFTER_S}
    table = record["applications"][0]["deployments"][0]["user_config"]
    tenant = {"tier": "free", "region": "eu", "models": ["*"]}
    for name in TEST_KEYS:
        table["tenants"][name] = dict(tenant)
        key = {"id": f"{name}-1", "tenant": name, "sha256": hash_key(TEST_KEYS[name])}
        table["keys"].append(key)
    table["tenants"]["abroad"]["region"] = "us"
    limits = {
        "input_tokens_per_min": 60_000,
        "input_burst_tokens": 2000,
        "output_tokens_per_min": 3000,
        "output_burst_tokens": 300,
        "requests_per_min": 6000,
    }
    plenty = dict.fromkeys(limits, 10**9) | {"max_active_sequences": 10**6}
    table["quotas"] = {
        "demo": plenty,
        "metered": limits,
        "capped": {"max_active_sequences": 4},
        "shadowed": limits | {"mode": "shadow"},
    }
    return str(yaml.safe_dump(record, sort_keys=False))


@contextmanager
def started(
    home: Path, models: Path, offset: int, *options: str, config_text: str = ""
) -> Iterator[Platform]:
    """A platform while the body runs: the shipped configuration, or that of `config_text`."""
    (home / "models").symlink_to(models)
    port = 8000 + offset
    config = home / "test.serve.yaml"
    text = config_text or CONFIG.read_text()
    config.write_text(text.replace("port: 8000", f"port: {port}"))
    assert f"port: {port}" in config.read_text()
    made = Platform(f"http://127.0.0.1:{port}", home, config, offset)
    try:  # also what a Ctrl-C leaves half-way
        done = made.run("up", "--config", str(config), "--port-offset", str(offset), *options)
        assert done.returncode == 0, done.stdout + done.stderr
        yield made
    finally:
        made.run("down")
