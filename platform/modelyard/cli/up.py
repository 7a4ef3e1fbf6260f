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
from cluster.local import LocalCluster, Running, StartFailed, code_digest, ray_command
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
SETTLED_S: Final = 2.0


def up(
    config: Annotated[Path, typer.Option(help="The Serve config.")] = Path(
        "configs/local.serve.yaml"
    ),
    port_offset: Annotated[
        int | None, typer.Option(help="Move Ray's own ports by this much. Default: 0.")
    ] = None,
    plain_proxy: Annotated[
        bool | None, typer.Option("--plain-proxy", help="Ray's Python proxy in place of HAProxy.")
    ] = None,
) -> None:
    """Start a local platform, deploy a config, wait until every model answers, show how to call."""
    settings = Settings.from_environment()
    cluster = LocalCluster(settings)
    _clean_up_when_killed()
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
            deployment = _checked(config)
        if running is not None:
            _require_same(running, deployment, port_offset, plain_proxy)
            _bring_up(cluster, running, config, deployment)
            return
        with _step("ray"):
            ports = LocalPorts().shifted(port_offset or 0)
            running = cluster.start(ports, deployment.http_port, haproxy=not plain_proxy)
        try:
            _bring_up(cluster, running, config, deployment)
        except BaseException:
            # A second Ctrl-C must not leave half of it running.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            typer.echo(f"stopping what was started; its logs stay in {running.logs}", err=True)
            cluster.stop(keep_logs=True)
            raise


def _clean_up_when_killed() -> None:
    """A killed `up` cleans up like an interrupted one. Ray takes the signal over when joined."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


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
    cluster: LocalCluster, running: Running, config: Path, deployment: Deployment
) -> None:
    """Deploy what is not deployed yet, wait for it, ask it."""
    digest, code = hashlib.sha256(config.read_bytes()).hexdigest(), code_digest()
    deployed = running.config_digest != digest
    if deployed:
        with _step("deploy"):
            _deploy(running, config)
    elif running.code_digest != code:
        typer.echo("the code has changed since it was deployed: `make down` and `make up` load it")
    _wait_until_ready(running, deployment, deployed=deployed)
    if deployed:
        # Not before it is ready: a deploy that failed is done again, and not taken for this one.
        cluster.remember(replace(running, config_digest=digest, code_digest=code))
    _show(deployment)


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


def _wait_until_ready(running: Running, deployment: Deployment, *, deployed: bool) -> None:
    with httpx.Client(base_url=deployment.url) as http:
        # When all is up, not even joining the cluster: that alone takes seconds. After a deploy
        # the old replicas still answer, so Serve is asked.
        if deployed or not _all_answer(http, deployment):
            _follow(running, deployment, http)


def _follow(running: Running, deployment: Deployment, http: httpx.Client) -> None:
    start = time.monotonic()
    board = Board()
    with connected(running), Progress() as progress:
        _clean_up_when_killed()
        while (waited_s := time.monotonic() - start) < READY_WITHIN_S:
            # While every replica imports torch at once, the board may take seconds to answer.
            with contextlib.suppress(Unreachable):
                apps = read_apps(board)
                progress.show(apps)
                _raise_if_failed(apps, waited_s)
                settled = waited_s > SETTLED_S  # before, Serve may not have begun on the deploy
                if settled and _all_running(apps, deployment) and _all_answer(http, deployment):
                    return
            time.sleep(0.5)
    raise StartFailed(
        f"the models were not ready within {READY_WITHIN_S:.0f} s: `modelyard status` says where "
        "they are"
    )


def _raise_if_failed(apps: list[AppView], waited_s: float) -> None:
    """Raises StartFailed for what failed since we wait; older posts are of an earlier deploy."""
    for app in apps:
        for replica in app.replicas:
            if replica.phase is Phase.FAILED and replica.age_s < waited_s:
                raise StartFailed(f"{app.name} failed to start: {replica.cause}")
        if app.status == "DEPLOY_FAILED":
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
    if not asked:
        typer.echo("no question was asked: the config has no demonstration key, use one of yours")
    if asked:
        typer.echo(f"demo key {DEMO_KEY} (public: for this machine only)\n")
        typer.echo("\n".join(question.curl(deployment.url, DEMO_KEY) for question in asked))


@contextmanager
def _step(name: str) -> Iterator[None]:
    start = time.monotonic()
    typer.echo(f"{name} ...")
    yield
    typer.echo(f"{name} done in {time.monotonic() - start:.1f} s")
