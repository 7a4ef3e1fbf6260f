"""Waiting for a deploy: until every app runs and the ingress says that every alias is ready."""

from __future__ import annotations

import contextlib
import signal
import time
from typing import Final

import httpx

from cluster.board import Board
from cluster.observe import AppView, Unreachable, connected, read_apps
from cluster.running import Running, StartFailed
from modelyard.cli.progress import Progress
from modelyard.cli.serve_message import telling_line
from modelyard.config.target import Deployment
from modelyard.lifecycle.phases import Phase
from modelyard.routing.fleet import version_of

READY_WITHIN_S: Final = 600.0
SETTLED_S: Final = 2.0
# Apps that fail for one reason fail one after the other: all of them are named.
FAILED_TOGETHER_S: Final = 5.0


def clean_up_when_killed() -> None:
    """A killed `up` cleans up like an interrupted one. Ray takes the signal over when joined."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def wait_until_ready(
    running: Running, deployment: Deployment, *, deployed: bool, within_s: float = READY_WITHIN_S
) -> None:
    """Raises StartFailed when a replica failed, or not all are ready `within_s`."""
    with httpx.Client(base_url=deployment.url) as http:
        # When all is up, not even joining the cluster: that alone takes seconds. After a deploy
        # the old replicas still answer, so Serve is asked.
        if deployed or not _all_answer(http, deployment):
            _follow(running, deployment, http, within_s)


def _follow(running: Running, deployment: Deployment, http: httpx.Client, within_s: float) -> None:
    start, failed_at = time.monotonic(), float("inf")
    board = Board()
    with connected(running), Progress() as progress:
        clean_up_when_killed()
        while (waited_s := time.monotonic() - start) < within_s:
            # While every replica imports torch at once, the board may take seconds to answer.
            with contextlib.suppress(Unreachable):
                apps = read_apps(board)
                progress.show(apps)
                if failed := _failed(apps, waited_s):
                    failed_at = min(failed_at, waited_s)
                    _raise_when_told(failed, apps, waited_s - failed_at)
                settled = waited_s > SETTLED_S  # before, Serve may not have begun on the deploy
                all_run = settled and _all_running(apps, deployment)
                if all_run and _all_answer(http, deployment, _at_zero(apps)):
                    return
            time.sleep(0.5)
    raise StartFailed(
        f"the models were not ready within {within_s:.0f} s: `modelyard status` says where they "
        "are; --ready-within-s gives them longer"
    )


def _raise_when_told(failed: list[str], apps: list[AppView], first_s: float) -> None:
    """Raises StartFailed with every line, once those that start still had time to fail too.

    first_s: seconds since the first failure was seen.
    """
    if first_s >= FAILED_TOGETHER_S or not any(app.starting for app in apps):
        raise StartFailed("\n".join(failed))


def _failed(apps: list[AppView], waited_s: float) -> list[str]:
    """A line for each app that failed since we wait; older posts are of an earlier deploy."""
    return [" ".join(words.split()) for app in apps if (words := _failure(app, waited_s))]


def _failure(app: AppView, waited_s: float) -> str:
    for replica in app.replicas:
        if replica.phase is Phase.FAILED and replica.age_s < waited_s:
            return f"{app.name} failed to start: {replica.cause}"
    if app.status != "DEPLOY_FAILED":
        return ""
    if app.failure is not None:
        # Of an earlier deploy, if Serve did not try again: still the reason for what it says.
        return f"{app.name} failed to start {app.failure.age_s:.0f} s ago: {app.failure.cause}"
    return f"{app.name} is {app.status}: {telling_line(app.message) or 'no message'}"


def _all_running(apps: list[AppView], deployment: Deployment) -> bool:
    running = {app.name for app in apps if app.status == "RUNNING"}
    return running >= set(deployment.apps)


def _at_zero(apps: list[AppView]) -> frozenset[str]:
    """Versions that run without a replica until somebody asks for them."""
    awake = {version_of(app.name) for app in apps if app.desired > 0}
    return frozenset(version_of(app.name) for app in apps) - awake


def _all_answer(
    http: httpx.Client, deployment: Deployment, at_zero: frozenset[str] = frozenset()
) -> bool:
    """Whether the ingress itself says that every alias is ready: it learns a moment later."""
    try:
        return all(
            http.get("/health/ready", params={"model": alias}).status_code == 200
            for alias, route in deployment.table.routes.items()
            if route.stable not in at_zero
        )
    except httpx.HTTPError:
        return False
