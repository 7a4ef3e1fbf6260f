"""`modelyard override`: what beats the file for a time, under its author's name."""

from __future__ import annotations

import json
from typing import Annotated, Any, get_args
from urllib.parse import quote

import typer

from modelyard.cli.admin_client import AdminClient
from modelyard.cli.check import Output
from modelyard.config.settings import Settings
from modelyard.control.published import OverrideKind

app = typer.Typer(no_args_is_help=True)


@app.callback()
def override() -> None:
    """Beat the file for a time: limit, floor, ceiling, freeze, drain."""


@app.command()
def add(
    kind: Annotated[str, typer.Argument(help="limit, floor, ceiling, freeze or drain.")],
    target: Annotated[
        str,
        typer.Argument(
            help="limit: TENANT/FIELD, or route:ALIAS/max_queued_requests (or max_queued_tokens); "
            "floor, ceiling: a version; freeze: a version, rollout:ID, or * for all that moves by "
            "itself; drain: an app (a replica: `modelyard replicas`)."
        ),
    ],
    reason: Annotated[str, typer.Option(help="Shown to whoever looks.")],
    expires_in_s: Annotated[
        float, typer.Option("--for", metavar="SECONDS", help="At most a week.", min=1)
    ],
    value: Annotated[float | None, typer.Option(help="Of a limit, floor or ceiling.")] = None,
) -> None:
    """Set an override; one of the same kind and target is replaced."""
    if kind not in get_args(OverrideKind):
        raise typer.BadParameter(
            f"{kind!r} is none: use {', '.join(get_args(OverrideKind))}", param_hint="KIND"
        )
    body = {"kind": kind, "target": target, "expires_in_s": expires_in_s, "reason": reason}
    if value is not None:
        body["value"] = value
    with AdminClient.from_settings(Settings.from_environment()) as client:
        answer = client.post("/admin/overrides", body)
    typer.echo(f"{answer['id']}: {kind} {target} for {expires_in_s:g} s")


@app.command(name="list")
def list_(
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Show the overrides in force."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        overrides = client.get("/admin/overrides")["overrides"]
    if output is Output.JSON:
        typer.echo(json.dumps(overrides, indent=2))
    else:
        typer.echo("\n".join(map(_line, overrides)) or "no override is in force")


@app.command()
def remove(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")],
) -> None:
    """End an override before its time."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        client.delete(f"/admin/overrides/{quote(identifier, safe='')}")
    typer.echo(f"{identifier} is removed")


def _line(one: dict[str, Any]) -> str:
    value = "" if one["value"] is None else f" {one['value']:g}"
    return (
        f"{one['id']}  {one['kind']} {one['target']}{value}  for {one['expires_in_s']:.0f} s more  "
        f"by {one['author']}: {one['reason']}"
    )
