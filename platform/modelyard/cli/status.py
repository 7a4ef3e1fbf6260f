"""`modelyard status`: the fleet, as Serve, the replicas, the ingresses and control report it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cluster.board import Board
from cluster.local import LocalCluster, Running, serve_api_answers
from cluster.observe import AppView, Unreachable, connected, read_platform
from cluster.serve_rest import NOTHING_READ, apps_by_rest
from modelyard.cli.admin_client import AdminClient, AdminRefused
from modelyard.cli.check import Output
from modelyard.cli.status_text import app_lines, board_lines, board_record
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from modelyard.control.reading import Reading


def status(
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Show every app, replica and ingress, and what control decided.

    With MODELYARD_API_KEY (role admin) also the phase of each rollout; else its weight only.
    Exit code 1 when an app does not run, a table was refused, or nothing runs.
    """
    settings = Settings.from_environment()
    running = LocalCluster(settings).running()
    if running is None:
        typer.echo("nothing is running: start it with `make up`", err=True)
        raise typer.Exit(1)
    if not serve_api_answers(running):
        # Joining a head that is half gone would retry for ever.
        typer.echo("the platform does not answer: run `make down`, then `make up`", err=True)
        raise typer.Exit(1)
    apps, reading, missing = _read(running)
    rollouts = _rollouts(settings)
    if missing:
        typer.echo(f"only what Serve's REST tells, because {missing}", err=True)
    if output is Output.JSON:
        record = {"apps": [asdict(view) for view in apps]} | board_record(reading, rollouts)
        typer.echo(json.dumps(record, indent=2))
    else:
        lines = [f"{'app':<32} {'status':<14} {'replica':<10} phase", *app_lines(apps)]
        typer.echo("\n".join(lines if missing else [*lines, *board_lines(reading, rollouts)]))
    fine = all(view.status == "RUNNING" for view in apps)
    tables = all(entry.post.table_valid for entry in reading.ingresses)
    raise typer.Exit(0 if fine and tables else 1)


def _rollouts(settings: Settings) -> list[dict[str, Any]]:
    """Control's views. None when nobody may or can be asked: the board tells the weights."""
    if settings.api_key is None:
        return []
    try:
        with AdminClient.from_settings(settings) as client:
            views: list[dict[str, Any]] = client.get("/admin/rollouts")["rollouts"]
    except (AdminRefused, ConfigError):
        return []
    return views


def _read(running: Running) -> tuple[list[AppView], Reading, str]:
    """Apps, the board, and why there is no more than Serve's REST has; empty when there is."""
    try:
        with connected(running):
            apps, reading = read_platform(Board())
    except Unreachable as error:
        return apps_by_rest(running), NOTHING_READ, str(error)
    return apps, reading, ""
