"""`modelyard replicas`: which there are, and how one is made to leave."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeAlias

import typer

from modelyard.cli.admin_client import AdminClient
from modelyard.cli.check import Output
from modelyard.cli.replica_orders import ReplicaOrders
from modelyard.config.settings import Settings

app = typer.Typer(no_args_is_help=True)

OutputOption: TypeAlias = Annotated[Output, typer.Option("--output", "-o", help="How to print.")]
Replica: TypeAlias = Annotated[
    str, typer.Argument(help="Its id as `list` shows it, or a beginning that no other has.")
]
Reason: TypeAlias = Annotated[str, typer.Option(help="Shown to whoever looks.")]
Within: TypeAlias = Annotated[
    float, typer.Option(metavar="SECONDS", help="How long to wait for each step.", min=1)
]


@app.callback()
def replicas() -> None:
    """List, drain and replace replicas."""


@app.command(name="list")
def list_(output: OutputOption = Output.TEXT) -> None:
    """Show the replicas of all models."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        found = ReplicaOrders(client, 0).all()
    if output is Output.JSON:
        typer.echo(json.dumps(found, indent=2))
    else:
        typer.echo("\n".join(map(_line, found)) or "no replica posts to the board")


@app.command()
def drain(
    replica: Replica,
    reason: Reason,
    within: Within = 900,
    wait: Annotated[bool, typer.Option(help="Until it has gone.")] = True,
    output: OutputOption = Output.TEXT,
) -> None:
    """Take a replica out of routing; it finishes what it holds and leaves. Serve starts another."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        orders = ReplicaOrders(client, within)
        found = orders.find(replica)
        orders.drain(found, reason, wait=wait)
    name, word = found["replica"], "has left" if wait else "was told to leave"
    _say({"replica": name, "app": found["app"], "left": wait}, f"{name} {word}", output)


@app.command()
def replace(
    replica: Replica, reason: Reason, within: Within = 900, output: OutputOption = Output.TEXT
) -> None:
    """Start another replica first, and drain this one when that is ready."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        orders = ReplicaOrders(client, within)
        found = orders.find(replica)
        new = orders.replace(found, reason)
    name = found["replica"]
    record = {"replica": name, "app": found["app"], "left": True, "new": new}
    _say(record, f"{name} has left, {new} is in its place", output)


def _say(record: dict[str, Any], text: str, output: Output) -> None:
    typer.echo(json.dumps(record, indent=2) if output is Output.JSON else text)


def _line(one: dict[str, Any]) -> str:
    words = one["drained"] or one["cause"] or ""
    return (
        f"{one['replica']}  {one['app']}  {one['phase']} for {one['phase_s']:.0f} s  "
        f"{one['ongoing']} ongoing  node {one['node'][:8]}" + (f"  {words}" if words else "")
    )
