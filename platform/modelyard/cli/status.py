"""`modelyard status`: the fleet, as Serve and the replicas themselves report it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from cluster.board import Board
from cluster.local import LocalCluster, serve_api_answers
from cluster.observe import AppView, connected, read_apps
from modelyard.cli.check import Output
from modelyard.config.settings import Settings
from modelyard.lifecycle.phases import Phase


def status(
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Show every app and replica. Exit code 1 when something is not ready, or nothing runs."""
    running = LocalCluster(Settings.from_environment()).running()
    if running is None:
        typer.echo("nothing is running: start it with `make up`", err=True)
        raise typer.Exit(1)
    if not serve_api_answers(running):
        # Joining a head that is half gone would retry for ever.
        typer.echo("the platform does not answer: run `make down`, then `make up`", err=True)
        raise typer.Exit(1)
    with connected(running):
        apps = read_apps(Board())
    if output is Output.JSON:
        typer.echo(json.dumps([asdict(view) for view in apps], indent=2))
    else:
        typer.echo("\n".join([f"{'app':<32} {'status':<14} {'replica':<10} phase", *_lines(apps)]))
    raise typer.Exit(0 if all(view.status == "RUNNING" for view in apps) else 1)


def _lines(apps: list[AppView]) -> list[str]:
    lines = []
    for view in apps:
        head = f"{view.name:<32} {view.status:<14}"
        for replica in view.replicas:
            started = (
                f", started in {replica.total_s:.1f} s" if replica.phase is Phase.READY else ""
            )
            lines.append(
                f"{head} {replica.replica:<10} {replica.phase} {replica.phase_s:.0f} s{started}, "
                f"{replica.ongoing} ongoing, pid {replica.pid}"
                + (f": {replica.cause}" if replica.cause else "")
            )
            head = " " * len(head)
        if not view.replicas:
            counts = ", ".join(f"{count} {state}" for state, count in view.states.items())
            lines.append(f"{head} {counts}".rstrip())
        if view.message and view.status != "RUNNING":
            lines.append(f"  {view.message.strip().splitlines()[-1]}")
    return lines
