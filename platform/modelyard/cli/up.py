"""`modelyard up`: from a checked config to models that answer, on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

import httpx
import typer

from cluster.board import Board
from cluster.local import LocalCluster, Running, StartFailed, ray_command
from cluster.observe import AppView, Unreachable, connected, read_apps
from cluster.ports import LocalPorts
from modelyard.artifacts.starter.prepare import prepare_all
from modelyard.cli.check import check_file
from modelyard.cli.progress import Progress
from modelyard.cli.questions import QUESTIONS
from modelyard.config.demo import DEMO_KEY, DEMO_KEY_HASHES
from modelyard.config.settings import Settings
from modelyard.config.target import Deployment, read_target
from modelyard.contract.errors import ConfigError
from modelyard.lifecycle.phases import Phase

READY_WITHIN_S: Final = 300.0


def up(
    config: Annotated[Path, typer.Option(help="The Serve config.")] = Path(
        "configs/local.serve.yaml"
    ),
    port_offset: Annotated[int, typer.Option(help="Move Ray's own ports by this much.")] = 0,
    plain_proxy: Annotated[
        bool, typer.Option("--plain-proxy", help="Ray's Python proxy in place of HAProxy.")
    ] = False,
) -> None:
    """Start a local platform, deploy a config, wait until every model answers, show how to call."""
    settings = Settings.from_environment()
    cluster = LocalCluster(settings)
    signal.signal(
        signal.SIGTERM, signal.default_int_handler
    )  # what Ctrl-C cleans up, kill does too
    with cluster.exclusive():
        with _step("models"):
            prepare_all(settings.models, report=lambda line: typer.echo(f"  {line}"))
        with _step("check"):
            deployment = _checked(config)
        running = cluster.running()
        if running is not None:
            _bring_up(cluster, running, config, deployment)
            return
        with _step("ray"):
            ports = LocalPorts().shifted(port_offset)
            running = cluster.start(
                ports, deployment.http_port, config.absolute(), haproxy=not plain_proxy
            )
        try:
            _bring_up(cluster, running, config, deployment)
        except BaseException:
            typer.echo("stopping what was started", err=True)
            cluster.stop(keep_logs=True)
            raise


def _bring_up(
    cluster: LocalCluster, running: Running, config: Path, deployment: Deployment
) -> None:
    running = _deploy(cluster, running, config)
    _wait_until_ready(running, deployment)
    _show(deployment)


def _checked(config: Path) -> Deployment:
    """The config, when nothing is wrong with it. Raises ConfigError with every fault."""
    if not config.exists():
        raise ConfigError(f"{config}: no such file: check the path")
    report = check_file(config)
    if not report.ok:
        raise ConfigError("the config is wrong\n" + "\n".join(str(f) for f in report.faults))
    return read_target(config)


def _deploy(cluster: LocalCluster, running: Running, config: Path) -> Running:
    """`serve deploy`, unless this very file is deployed already."""
    digest = hashlib.sha256(config.read_bytes()).hexdigest()
    if running.config_digest == digest:
        return running
    with _step("deploy"):
        done = subprocess.run(
            [ray_command("serve"), "deploy", str(config), "--address", running.dashboard_url],
            env=os.environ | {"RAY_AUTH_MODE": "token"},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise StartFailed(f"`serve deploy {config}` failed: {' '.join(last)}")
    running = replace(running, config=str(config.absolute()), config_digest=digest)
    cluster.remember(running)
    return running


def _wait_until_ready(running: Running, deployment: Deployment) -> None:
    with httpx.Client(base_url=deployment.url) as http:
        # When all is up, not even joining the cluster: that alone takes seconds.
        if not _all_answer(http, deployment):
            _follow(running, deployment, http)


def _follow(running: Running, deployment: Deployment, http: httpx.Client) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    board = Board()
    with connected(running), Progress() as progress:
        while time.monotonic() < deadline:
            # While every replica imports torch at once, the board may take seconds to answer.
            with contextlib.suppress(Unreachable):
                apps = read_apps(board)
                progress.show(apps)
                _raise_if_failed(apps)
                if _all_running(apps, deployment) and _all_answer(http, deployment):
                    return
            time.sleep(0.5)
    raise StartFailed(
        f"the models were not ready within {READY_WITHIN_S:.0f} s: `modelyard status` says where "
        "they are"
    )


def _raise_if_failed(apps: list[AppView]) -> None:
    for app in apps:
        for replica in app.replicas:
            if replica.phase is Phase.FAILED:
                raise StartFailed(f"{app.name} failed to start: {replica.cause}")
        if app.status in ("DEPLOY_FAILED", "UNHEALTHY"):
            last = app.message.strip().splitlines()[-1:] or ["no message"]
            raise StartFailed(f"{app.name} is {app.status}: {last[0]}")


def _all_running(apps: list[AppView], deployment: Deployment) -> bool:
    running = {app.name for app in apps if app.status == "RUNNING"}
    return running >= set(deployment.apps)


def _all_answer(http: httpx.Client, deployment: Deployment) -> bool:
    """Whether the ingress itself says that every alias is ready: it learns a moment later."""
    try:
        return all(
            http.get("/health/ready", params={"model": alias}).status_code == 200
            for alias in deployment.table.routes
        )
    except httpx.HTTPError:
        return False


def _show(deployment: Deployment) -> None:
    """Ask each starter model its question, and print how to ask it again."""
    known = any(key.sha256 in DEMO_KEY_HASHES for key in deployment.table.keys)
    asked = [q for q in QUESTIONS if known and q.alias in deployment.table.routes]
    headers = {"Authorization": f"Bearer {DEMO_KEY}"}
    with httpx.Client(base_url=deployment.url, headers=headers, timeout=60.0) as http:
        for question in asked:
            typer.echo(f"{question.alias:<18} {question.ask(http)}")
    typer.echo(f"\nready at {deployment.url}")
    if asked:
        typer.echo(f"demo key {DEMO_KEY} (public: for this machine only)\n")
        typer.echo("\n".join(question.curl(deployment.url, DEMO_KEY) for question in asked))


@contextmanager
def _step(name: str) -> Iterator[None]:
    start = time.monotonic()
    typer.echo(f"{name} ...")
    yield
    typer.echo(f"{name} done in {time.monotonic() - start:.1f} s")
