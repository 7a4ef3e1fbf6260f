"""`modelyard up`: from a checked config to models that answer, on this machine."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import httpx
import typer

from cluster.emulated import EmulatedFleet
from cluster.local import LocalCluster
from cluster.local_environment import code_digest, ray_command
from cluster.ports import LocalPorts
from cluster.running import Running, StartFailed
from cluster.serve_rest import apps_by_rest
from modelyard.artifacts.starter.prepare import prepare_all
from modelyard.cli.check import check_file
from modelyard.cli.check_live import require_live
from modelyard.cli.failed_apps import drop_given_up
from modelyard.cli.node_text import node_lines
from modelyard.cli.questions import QUESTIONS, questions_of_others
from modelyard.cli.up_fleet import (
    fleet_at,
    is_fleet_spec,
    planned_config,
    require_one_proxy,
)
from modelyard.cli.waiting import READY_WITHIN_S, clean_up_when_killed, wait_until_ready
from modelyard.config.demo import DEMO_KEY, DEMO_KEY_HASHES
from modelyard.config.settings import Settings
from modelyard.config.target import Deployment, read_target
from modelyard.contract.errors import ConfigError
from placement.changes import Effect


def up(
    config: Annotated[
        Path | None,
        typer.Option(
            help="The Serve config, or a fleet spec, which is planned first. "
            "Default: that of --emulate, else configs/local.serve.yaml."
        ),
    ] = None,
    emulate: Annotated[
        Path | None,
        typer.Option(
            metavar="FLEET",
            help="Start the machines of this fleet spec as Ray nodes of this one, with devices "
            "that are not there. Default: those of --config where it is a fleet spec.",
        ),
    ] = None,
    port_offset: Annotated[
        int | None, typer.Option(help="Move Ray's own ports by this much. Default: 0.")
    ] = None,
    plain_proxy: Annotated[
        bool | None, typer.Option("--plain-proxy", help="Ray's Python proxy in place of HAProxy.")
    ] = None,
    ready_within_s: Annotated[
        float, typer.Option(min=1, help="How long the models may take to be ready.")
    ] = READY_WITHIN_S,
) -> None:
    """Start a local platform, deploy a config, wait until every model answers, show how to call.

    With --emulate again after a machine was lost: it is started anew.
    """
    settings = Settings.from_environment()
    cluster = LocalCluster(settings)
    clean_up_when_killed()
    with cluster.exclusive():
        running = cluster.running()
        with _step("models"):
            # Every byte before a start: a damaged file would stop its replica later, and the model
            # would be "present" still. Replicas that run have verified theirs.
            prepare_all(
                settings.models,
                report=lambda line: typer.echo(f"  {line}"),
                hashes=running is None,
            )
        with _step("check"):
            config, fleet = _resolved(config, emulate, settings)
            deployment = _checked(config)
        if running is not None:
            _require_same(running, deployment, port_offset, plain_proxy)
            running = _joined(cluster, running, fleet)
            _bring_up(cluster, running, config, deployment, ready_within_s, serves=True)
            return
        with _step("ray"):
            ports = LocalPorts().shifted(port_offset or 0)
            running = cluster.start(
                ports,
                deployment.http_port,
                haproxy=not plain_proxy,
                head=fleet.head if fleet else None,
            )
        try:
            running = _joined(cluster, running, fleet)
            _bring_up(cluster, running, config, deployment, ready_within_s, serves=False)
        except BaseException:
            # A second Ctrl-C must not leave half of it running.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            typer.echo(f"stopping what was started; its logs stay in {running.logs}", err=True)
            cluster.stop(keep_logs=True)
            raise


def _resolved(
    config: Path | None, emulate: Path | None, settings: Settings
) -> tuple[Path, EmulatedFleet | None]:
    """The Serve config, planned where a fleet spec was given, and the machines."""
    given = config or emulate or Path("configs/local.serve.yaml")
    planned = is_fleet_spec(given)
    machines = emulate or (given if planned else None)
    serve_config = planned_config(given, settings) if planned else given
    fleet = fleet_at(machines) if machines else None
    if fleet is not None:
        require_one_proxy(serve_config, fleet)
    return serve_config, fleet


def _joined(cluster: LocalCluster, running: Running, fleet: EmulatedFleet | None) -> Running:
    """With every node of the fleet there. Raises ConfigError or StartFailed."""
    if fleet is None:
        return running
    with _step("nodes"):
        running = cluster.join(running, fleet)
    typer.echo("\n".join(node_lines(running)))
    return running


def _require_same(
    running: Running, deployment: Deployment, port_offset: int | None, plain_proxy: bool | None
) -> None:
    """What is fixed at the start cannot be changed by a deploy. Raises ConfigError."""
    wanted = None if port_offset is None else LocalPorts().shifted(port_offset)
    changed = [
        what
        for what, differs in (
            ("http_options.port", running.http_port != deployment.http_port),
            ("--port-offset", wanted not in (None, running.ports)),
            ("--plain-proxy", plain_proxy is not None and plain_proxy == running.haproxy),
        )
        if differs
    ]
    if changed:
        raise ConfigError(
            f"a platform runs already, and {', '.join(changed)} cannot change while it runs: "
            "run `make down` first"
        )


def _bring_up(
    cluster: LocalCluster,
    running: Running,
    config: Path,
    deployment: Deployment,
    ready_within_s: float,
    *,
    serves: bool,
) -> None:
    """Deploy what is not deployed yet, wait for it, ask it. serves: it ran before this command.

    Raises ConfigError, before anything is deployed, where that would drop what is still needed.
    """
    digest, code = hashlib.sha256(config.read_bytes()).hexdigest(), code_digest()

    def deploy(path: Path) -> None:
        if serves:
            # Always of the whole config: what a part of it leaves out has failed, and is coming.
            _tell_changes(running, config)
        _deploy(running, path)

    again = drop_given_up(config, lambda: apps_by_rest(running), deploy)
    deployed = again or running.config_digest != digest
    if deployed:
        with _step("deploy"):
            deploy(config)
    elif running.code_digest != code:
        typer.echo("the code has changed since it was deployed: `make down` and `make up` load it")
    wait_until_ready(running, deployment, deployed=deployed, within_s=ready_within_s)
    if deployed:
        # Not before it is ready: a deploy that failed is done again, and not taken for this one.
        cluster.remember(replace(running, config_digest=digest, code_digest=code))
    _show(deployment)


def _tell_changes(running: Running, config: Path) -> None:
    """What the deploy does to apps that run. Raises ConfigError with each that must not go."""
    found = require_live(running, config)
    told = [change for change in found.changes if change.effect is not Effect.SAME]
    for line in (*told, *found.notes):
        typer.echo(f"  {line}")


def _checked(config: Path) -> Deployment:
    """The config, when nothing is wrong with it. Raises ConfigError with every fault."""
    if not config.is_file():
        raise ConfigError(f"{config}: no such file: check the path")
    report = check_file(config)
    if not report.ok:
        raise ConfigError("the config is wrong\n" + "\n".join(str(f) for f in report.faults))
    return read_target(config)


def _deploy(running: Running, config: Path) -> None:
    """`serve deploy`. Raises StartFailed with its last line."""
    done = subprocess.run(
        [ray_command("serve"), "deploy", str(config), "--address", running.dashboard_url],
        env=os.environ | {"RAY_AUTH_MODE": "token"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        # The tail, not the last line: Serve ends some of its errors with a lone full stop.
        tail = " ".join((done.stderr.strip() or done.stdout.strip()).split())[-500:]
        raise StartFailed(f"`serve deploy {config}` failed: ...{tail}")


def _show(deployment: Deployment) -> None:
    """Ask each starter model its question, and print how to ask it again."""
    known = any(key.sha256 in DEMO_KEY_HASHES for key in deployment.table.keys)
    asked = [q for q in QUESTIONS if known and q.alias in deployment.table.routes]
    headers = {"Authorization": f"Bearer {DEMO_KEY}"}
    with httpx.Client(base_url=deployment.url, headers=headers, timeout=60.0) as http:
        for question in asked:
            typer.echo(f"{question.alias:<18} {question.ask(http)}")
        told = asked + (questions_of_others(http) if known else [])
    typer.echo(f"\nready at {deployment.url}")
    if not known:
        typer.echo("no question was asked: the config has no demonstration key, use one of yours")
        return
    typer.echo(f"demo key {DEMO_KEY} (public: for this machine only)\n")
    typer.echo("\n".join(question.curl(deployment.url, DEMO_KEY) for question in told))


@contextmanager
def _step(name: str) -> Iterator[None]:
    start = time.monotonic()
    typer.echo(f"{name} ...")
    yield
    typer.echo(f"{name} done in {time.monotonic() - start:.1f} s")
