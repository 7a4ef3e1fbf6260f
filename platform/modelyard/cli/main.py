"""The `modelyard` command. Exit codes: 0 ok, 1 no, 2 wrong usage."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from modelyard import __version__
from modelyard.cli import bench, keys, models, override, replicas, rollout, route
from modelyard.cli.check import check
from modelyard.cli.down import down
from modelyard.cli.plan import plan
from modelyard.cli.status import status
from modelyard.cli.up import up
from modelyard.cli.usage import usage
from modelyard.cli.why import why
from modelyard.contract.errors import ModelyardError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(up)
app.command()(down)
app.command()(status)
app.command()(check)
app.command()(plan)
app.command()(usage)
app.command()(why)
app.add_typer(models.app, name="models", help="Make and list model artifacts.")
app.add_typer(keys.app, name="keys", help="Make, list and revoke API keys.")
app.add_typer(route.app, name="route", help="Where requests go.")
app.add_typer(rollout.app, name="rollout", help="Canaries: look, approve, roll back.")
app.add_typer(override.app, name="override", help="Beat the file for a time.")
app.add_typer(replicas.app, name="replicas", help="List, drain and replace replicas.")
app.add_typer(bench.app, name="bench")


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Many models behind one ingress, on Ray Serve."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Entry point: an error of ours, or of the disk, is one sentence, never a traceback."""
    try:
        app()
    except ModelyardError as error:
        typer.echo(f"modelyard: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        # Every command reads or writes under home, and any step of it may meet a full or odd disk.
        place = f"{error.filename}: " if error.filename is not None else ""
        typer.echo(
            f"modelyard: {place}{error.strerror or error}: check the path and MODELYARD_HOME",
            err=True,
        )
        sys.exit(1)
