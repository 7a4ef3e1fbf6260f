"""`modelyard status`: the fleet, as Serve, the replicas, the ingresses and control report it."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cluster.board import Board
from cluster.head import serve_api_answers
from cluster.local import LocalCluster
from cluster.observe import (
    AppView,
    Unreachable,
    connected,
    read_platform,
    serve_applications,
)
from cluster.running import Running
from cluster.serve_rest import NOTHING_READ, apps_by_rest
from modelyard.cli.admin_client import AdminClient, AdminRefused
from modelyard.cli.check import Output
from modelyard.cli.node_text import node_lines, node_record
from modelyard.cli.placement_text import placement_lines, placement_record
from modelyard.cli.status_text import app_lines, board_lines, board_record
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from modelyard.control.reading import Reading
from placement.watched import Placement, read_placement


def status(
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Show every app, replica and ingress, and what control decided.

    With MODELYARD_API_KEY (role admin) also the phase of each rollout; else its weight only.
    Exit code 1 when an app does not run, a table was refused, a replica is not where it was planned
    or waits for a place, or nothing runs.
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
    apps, reading, placed, missing = _read(running)
    rollouts = _rollouts(settings)
    if missing:
        typer.echo(f"only what Serve's REST tells, because {missing}", err=True)
    if output is Output.JSON:
        record = {"apps": [asdict(view) for view in apps]} | board_record(reading, rollouts)
        typer.echo(json.dumps(record | placement_record(placed) | node_record(running), indent=2))
    else:
        lines = [f"{'app':<32} {'status':<14} {'replica':<10} phase", *app_lines(apps)]
        told = [*placement_lines(placed), *node_lines(running), *board_lines(reading, rollouts)]
        typer.echo("\n".join(lines if missing else [*lines, *told]))
    fine = all(view.status == "RUNNING" for view in apps)
    tables = all(entry.post.table_valid for entry in reading.ingresses)
    as_planned = placed is None or placed.fine
    raise typer.Exit(0 if fine and tables and as_planned else 1)


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


def _read(running: Running) -> tuple[list[AppView], Reading, Placement | None, str]:
    """Apps, the board, the placement where there is one, and why there is no more than Serve's REST
    has; empty when there is."""
    try:
        with connected(running):
            apps, reading = read_platform(Board())
            placed = _placement(reading)
    except Unreachable as error:
        return apps_by_rest(running), NOTHING_READ, None, str(error)
    return apps, reading, placed, ""


def _placement(reading: Reading) -> Placement | None:
    try:
        return read_placement(serve_applications(), reading, time.time())
    except ConfigError as error:  # places that somebody wrote by hand
        typer.echo(f"the placement is not compared: {error}", err=True)
        return None
