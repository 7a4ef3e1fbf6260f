"""Deploying apps anew that Serve gave up: in the same config it sees nothing new to try.

So such an app is taken out first, and the config deployed again when Serve has deleted it. An app
of which a replica still runs is not: its callers would lose it. Serve replaces a failed update only
by another version, which any other `args` make.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import typer
import yaml

from cluster.observe import AppView, Unreachable
from cluster.running import StartFailed

# A failed app has no request to finish: Serve deletes it within seconds, unless its machine swaps.
DELETED_WITHIN_S: Final = 120.0
POLL_S: Final = 0.5
_GIVEN_UP: Final = "DEPLOY_FAILED"


def given_up(apps: Iterable[AppView]) -> tuple[set[str], set[str]]:
    """Names of the apps that failed: without a replica that runs, and with one."""
    failed = [app for app in apps if app.status == _GIVEN_UP]
    return (
        {app.name for app in failed if not app.states.get("RUNNING")},
        {app.name for app in failed if app.states.get("RUNNING")},
    )


def without(config: str, dropped: set[str]) -> str:
    """A Serve config's text without these apps."""
    record: dict[str, Any] = yaml.safe_load(config)
    kept = [app for app in record["applications"] if app["name"] not in dropped]
    return yaml.safe_dump(record | {"applications": kept}, sort_keys=False)


def drop_given_up(
    config: Path,
    read_apps: Callable[[], list[AppView]],
    deploy: Callable[[Path], None],
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> bool:
    """Whether apps were dropped, so that `config` must be deployed again. Says what it does.

    Raises StartFailed when Serve does not delete them.
    """
    text = config.read_text()
    # What the config does not name any more goes with its deploy.
    named = {app["name"] for app in yaml.safe_load(text)["applications"]}
    try:
        dead, updated = given_up(app for app in read_apps() if app.name in named)
    except Unreachable:  # the deploy itself says what is wrong
        return False
    for name in sorted(updated):
        typer.echo(
            f"  {name} had failed to update, and its older replicas serve on: the same config is "
            "not tried again: change its args (a start budget will do), or `make down`, `make up`"
        )
    for name in sorted(dead):
        typer.echo(f"  {name} had failed: trying it again")
    if not dead:
        return False
    with tempfile.TemporaryDirectory(prefix="modelyard-deploy-") as folder:
        partial = Path(folder) / config.name
        partial.write_text(without(text, dead))
        deploy(partial)
    _wait_until_deleted(dead, read_apps, now, sleep)
    return True


def _wait_until_deleted(
    names: set[str],
    read_apps: Callable[[], list[AppView]],
    now: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    until = now() + DELETED_WITHIN_S
    while True:
        with contextlib.suppress(Unreachable):
            if not (left := names & {app.name for app in read_apps()}):
                return
            if now() >= until:
                raise StartFailed(
                    f"Serve has not deleted {', '.join(sorted(left))} within "
                    f"{DELETED_WITHIN_S:.0f} s: `make down` and `make up` start anew"
                )
        if now() >= until + DELETED_WITHIN_S:
            raise StartFailed("Serve's REST does not answer: `make down` and `make up` start anew")
        sleep(POLL_S)
