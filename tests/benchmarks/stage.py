"""A platform for a benchmark: its own cluster, home and ports; nothing of it stays."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import yaml

from cluster.local import LocalCluster
from cluster.ports import LocalPorts
from cluster.ray_token import ray_token
from cluster.running import Running, run_of
from modelyard.cli.waiting import clean_up_when_killed
from modelyard.config.settings import Settings
from tests.benchmarks.measure import CpuMeter, family

ROOT: Final = Path(__file__).parents[2]
LOCAL_CONFIG: Final = ROOT / "configs" / "local.serve.yaml"
READY_WITHIN_S: Final = 300.0
SETTLE_S: Final = 3.0
APPS: Final = "/api/serve/applications/"
REPLICA: Final = re.compile(r"ray::ServeReplica:(.+:[A-Za-z]+)")

App = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """A running platform. `port` is HAProxy's; `home` goes with it."""

    running: Running
    port: int
    home: Path

    def processes(self, title: str) -> list[psutil.Process]:
        """Those of the cluster whose command line begins so."""
        every = run_of(self.running.run_id, self.running.pid).processes()
        return [one for one in every if " ".join(one.cmdline()).startswith(title)]

    def meter(self, others: Mapping[int, str]) -> CpuMeter:
        """CPU by group: `haproxy`, `<app>:<deployment>` with its children, and `rest`.

        others: processes outside the cluster with what they started, as pid: group.
        """
        ours = self.processes("")
        theirs = [(process, group) for pid, group in others.items() for process in family(pid)]
        return CpuMeter([(process, group_of(process)) for process in ours] + theirs)


def group_of(process: psutil.Process) -> str:
    """The group of one of the cluster's processes."""
    for one in (process, *process.parents()):
        if (found := REPLICA.match(" ".join(one.cmdline()))) is not None:
            return found.group(1)
    return "haproxy" if process.name() == "haproxy" else "rest"


@contextmanager
def staged(apps: Sequence[App], port_offset: int, aliases: Sequence[str]) -> Iterator[Stage]:
    """Deploy `apps` on a cluster of their own, ready when every ingress answers for `aliases`."""
    clean_up_when_killed()
    # Replicas import the benchmarks' own deployments, and this checkout rather than another.
    os.environ["PYTHONPATH"] = os.pathsep.join((str(ROOT), str(ROOT / "platform")))
    home = Path(tempfile.mkdtemp(prefix="modelyard-bench-"))
    models = Settings.from_environment().models
    (home / "models").symlink_to(models)
    cluster = LocalCluster(Settings(home, home / "secret"))
    port = 8000 + port_offset
    try:
        running = cluster.start(LocalPorts().shifted(port_offset), port, haproxy=True)
        deploy(running, apps, port)
        ingresses = [app["route_prefix"] for app in apps if is_ingress(app)]
        wait("every alias is ready", lambda: all_ready(port, ingresses, aliases))
        time.sleep(SETTLE_S)  # the last imports of what has just started
        yield Stage(running, port, home)
    finally:
        cluster.stop()
        remove(home)


def remove(home: Path) -> None:
    """The home, and the logs that a start which failed has left for a next one: there is none."""
    kept = home / "run" / "kept-logs"
    folders = kept.read_text().splitlines() if kept.exists() else []
    for folder in (*map(Path, folders), home):
        shutil.rmtree(folder, ignore_errors=True)


def deploy(running: Running, apps: Sequence[App], port: int) -> None:
    """What `serve deploy` does, and then wait until every app runs."""
    config = {"http_options": {"host": "127.0.0.1", "port": port}, "applications": list(apps)}
    with httpx.Client(
        base_url=running.dashboard_url,
        headers={"Authorization": f"Bearer {ray_token()}"},
        timeout=60.0,
    ) as serve:
        # On a busy machine the dashboard gives up waiting for a controller that is still starting.
        wait("Serve takes the deploy", lambda: _takes(serve, config))
        wait("every app runs", lambda: _all_run(serve, {app["name"] for app in apps}))


def _takes(serve: httpx.Client, config: App) -> bool:
    answer = serve.put(APPS, json=config)
    if answer.is_client_error:
        raise RuntimeError(f"Serve refuses the deploy: {answer.text[-2000:]}")
    return answer.is_success


def _all_run(serve: httpx.Client, names: set[str]) -> bool:
    shown = serve.get(APPS).raise_for_status().json()["applications"]
    for name, app in shown.items():
        if app["status"] == "DEPLOY_FAILED":
            causes = [app["message"], *(one["message"] for one in app["deployments"].values())]
            raise RuntimeError(f"{name} was not deployed: {' '.join(causes)[-3000:]}")
    return names <= {name for name, app in shown.items() if app["status"] == "RUNNING"}


def is_ingress(app: App) -> bool:
    return bool(app["import_path"] == "deployments.ingress:app")


def all_ready(port: int, prefixes: Sequence[str], aliases: Sequence[str]) -> bool:
    try:
        return all(
            httpx.get(
                f"http://127.0.0.1:{port}{prefix.rstrip('/')}/health/ready",
                params={"model": alias},
                timeout=10.0,
            ).status_code
            == 200
            for prefix in prefixes
            for alias in aliases
        )
    except httpx.HTTPError:
        return False


def wait(what: str, look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while not look():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it was not true within {READY_WITHIN_S:.0f} s that {what}")
        time.sleep(0.5)


def local_apps(*names: str) -> list[App]:
    """Apps of configs/local.serve.yaml, with the ingress's table cut to the routes that remain."""
    record: dict[str, Any] = yaml.safe_load(LOCAL_CONFIG.read_text())
    apps = [app for app in record["applications"] if app["name"] in ("ingress", *names)]
    table = next(app for app in apps if is_ingress(app))["deployments"][0]["user_config"]
    table["routes"] = {
        alias: route for alias, route in table["routes"].items() if route["stable"] in names
    }
    for tenant in table["tenants"].values():
        tenant["models"] = [m for m in tenant["models"] if m == "*" or m in table["routes"]]
    return apps
