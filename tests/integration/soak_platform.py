"""What a soak does to a platform, and what it looks at afterwards."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import psutil
import yaml
from prometheus_client.parser import text_string_to_metric_families
from ray import serve

from cluster.local import LocalCluster
from cluster.local_environment import ray_command
from cluster.running import Running, run_of
from deployments.broadcast import ask_all
from modelyard.config.demo import OPS_KEY
from modelyard.config.settings import Settings
from modelyard.control.client import ingress_token
from modelyard.quota.figures import CLASSES, Key
from modelyard.quota.messages import HolderReport
from tests.integration.soak_config import text_of

TITLE: Final = "ray::ServeReplica:"
# Of every process: what it works on, and what waits.
OF_MODELS: Final = (
    "modelyard_sequences_active",
    "modelyard_sequences_waiting",
    "vllm:num_requests_running",
    "vllm:num_requests_waiting",
)
# And what a scrape missed, or a replica that is away would look idle.
GAUGES: Final = (
    *OF_MODELS,
    "modelyard_requests_in_flight",
    "modelyard_requests_waiting",
    "modelyard_scrape_missing",
)
ANSWER_WITHIN_S: Final = 10.0


class SoakedPlatform:
    """A running platform, joined as a driver."""

    def __init__(self, platform: Any) -> None:
        self.platform = platform
        self.settings = Settings(platform.home, platform.home / "secret")
        running = LocalCluster(self.settings).running()
        assert running is not None
        self.running: Running = running

    def processes(self) -> list[psutil.Process]:
        return run_of(self.running.run_id, self.running.pid).processes()

    def replicas(self, app: str) -> list[psutil.Process]:
        """The oldest first."""
        title = f"{TITLE}{app}:"
        found = [one for one in self.processes() if title_of(one).startswith(title)]
        return sorted(found, key=lambda one: one.create_time())

    def kill(self, app: str) -> None:
        """The newest replica, with -9."""
        self.replicas(app)[-1].kill()

    def deploy(self, record: Mapping[str, Any], name: str) -> None:
        path = self.platform.home / f"{name}.serve.yaml"
        port = yaml.safe_load(self.platform.config.read_text())["http_options"]["port"]
        text = text_of(dict(record) | {"http_options": {"host": "127.0.0.1", "port": port}})
        path.write_text(text)
        done = subprocess.run(
            [ray_command("serve"), "deploy", str(path), "--address", self.running.dashboard_url],
            env=os.environ | {"RAY_AUTH_MODE": "token"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr[-2000:]

    def left_over(self, tenants: tuple[str, ...]) -> dict[str, float]:
        """What is not zero that must be, on a platform that nobody asks anything."""
        reading = self.platform.board.read_all_blocking(ANSWER_WITHIN_S)
        found: dict[str, float] = {}
        for post in (entry.post for entry in reading.ingresses if entry.age_s < 2):
            found[f"{post.ingress} in flight"] = sum(count for _, count in post.in_flight)
            for name, lanes in (("waiting", post.waiting), ("running", post.running)):
                found[f"{post.ingress} {name}"] = sum(count for _, _, count in lanes)
        for report in (post.report for post in reading.posts if post.age_s < 3):
            found[f"{report.replica} ongoing"] = report.ongoing
        found |= self._gauges()
        found |= self._permits(tenants)
        return {name: count for name, count in found.items() if count}

    def _gauges(self) -> dict[str, float]:
        with self.platform.client(OPS_KEY) as client:
            text = client.get("/metrics").raise_for_status().text
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(text):
            if family.name in GAUGES:
                total = sum(sample.value for sample in family.samples)
                found[family.name] = found.get(family.name, 0.0) + total
        # Those of an ingress have no sample where nothing runs, those of a model always do.
        absent = {f"nobody exports {name}": 1.0 for name in OF_MODELS if name not in found}
        return found | absent

    def _permits(self, tenants: tuple[str, ...]) -> dict[str, float]:
        """Those in use, as each ingress would report them to control."""
        wanted = tuple(Key(tenant, one, "sequences") for tenant in tenants for one in CLASSES)
        handle = serve.get_deployment_handle("Ingress", app_name="ingress")
        token = ingress_token(self.settings.secret())
        answers = asyncio.run(
            ask_all(handle, "surrender", token, {}, wanted, timeout_s=ANSWER_WITHIN_S)
        )
        reports = [one for one in answers.given if isinstance(one, HolderReport)]
        assert len(reports) == answers.asked >= 1, answers
        return {
            f"{report.ingress} permits of {key.tenant} {key.model_class}": holding.burst
            - holding.level
            for report in reports
            for key, holding in report.holdings.items()
            if key.is_permits
        }

    def log_lines(self, prefix: str) -> list[dict[str, Any]]:
        """Of the request log: the lines of requests whose id begins so."""
        lines = [
            json.loads(line)
            for path in sorted((self.platform.home / "logs").glob("requests-*.jsonl*"))
            for line in path.read_text().splitlines()
        ]
        return [line for line in lines if line["request_id"].startswith(prefix)]


def title_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()) or process.name()
    except psutil.Error:  # it ended while we looked
        return ""


@dataclass(slots=True)
class Grown:
    """A process that lived to the end: its resident bytes once it was warm, and then."""

    title: str
    warm_bytes: int
    end_bytes: int = 0

    def __str__(self) -> str:
        return f"{self.title}: {self.warm_bytes / 1e6:.0f} -> {self.end_bytes / 1e6:.0f} MB"


@dataclass(slots=True)
class Memory:
    """Looked at again and again. A process is warm `warm_s` after its start."""

    soaked: SoakedPlatform
    warm_s: float
    warm: dict[psutil.Process, Grown] = field(default_factory=dict)

    def look(self) -> None:
        for process, rss in self._resident().items():
            if process not in self.warm and time.time() - process.create_time() >= self.warm_s:
                self.warm[process] = Grown(title_of(process)[:70], rss)

    def end(self) -> list[Grown]:
        """Those that were warm and are there still, the largest growth first."""
        resident = self._resident()
        living = [(grown, resident[one]) for one, grown in self.warm.items() if one in resident]
        for grown, rss in living:
            grown.end_bytes = rss
        return sorted(
            (grown for grown, _ in living),
            key=lambda one: one.warm_bytes - one.end_bytes,
        )

    def _resident(self) -> dict[psutil.Process, int]:
        found = {}
        for process in self.soaked.processes():
            try:
                found[process] = process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        return found
