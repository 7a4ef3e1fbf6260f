"""`modelyard route`: where requests go."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from modelyard.cli.admin_client import AdminClient
from modelyard.cli.check import Output
from modelyard.config.settings import Settings

app = typer.Typer(no_args_is_help=True)


@app.callback()
def root() -> None:
    """Where requests go."""


@app.command()
def explain(
    tenant: Annotated[str, typer.Option(help="Whose request it is.")],
    model: Annotated[str, typer.Option(help="The alias, or name@version.")],
    conversation: Annotated[
        str, typer.Option(help="Its X-Conversation-Id; left out, one request is drawn.")
    ] = "",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Say step by step where a request would go now, and why. Exit code 1: it would be refused."""
    asked = {"tenant": tenant, "model": model, "conversation": conversation}
    with AdminClient.from_settings(Settings.from_environment()) as client:
        answer = client.get("/admin/route", asked)
    if output is Output.JSON:
        typer.echo(json.dumps(answer["steps"], indent=2))
    else:
        typer.echo("\n".join(answer["lines"]))
    raise typer.Exit(1 if answer["steps"][-1]["name"] == "refused" else 0)
