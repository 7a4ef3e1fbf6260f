"""`modelyard models`: make the starter models, and see which are there."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from modelyard.artifacts.starter.prepare import RECIPES, folder_of, prepare_all, present
from modelyard.artifacts.starter.recipe import VERSION, Recipe
from modelyard.config.settings import Settings, expand
from modelyard.contract.errors import ModelyardError

app = typer.Typer(help="The starter models.", no_args_is_help=True)


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


Models = Annotated[
    Path | None,
    typer.Option("--models", metavar="DIR", help="The models' folder; MODELYARD_HOME/models."),
]


@app.command()
def prepare(
    models: Models = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="NAME", help="One model; repeatable.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every byte of the models that are there.")
    ] = False,
) -> None:
    """Make the models that are missing or stale. Exit code 0: all there, 1: one failed."""
    try:
        prepare_all(_folder(models), only, typer.echo, hashes=verify)
    except ModelyardError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error


@app.command(name="list")
def list_models(
    models: Models = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Each starter model: whether it is there, its size and digest. Exit code 1: one is missing."""
    try:
        records = [_record(_folder(models), recipe) for recipe in RECIPES]
    except ModelyardError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    if output is Output.JSON:
        typer.echo(json.dumps(records, indent=2))
    else:
        typer.echo("\n".join(_line(record) for record in records))
    raise typer.Exit(0 if all(record["present"] for record in records) else 1)


def _folder(models: Path | None) -> Path:
    if models is None:
        return Settings.from_environment().models
    return expand(str(models), "--models").absolute()


def _record(models: Path, recipe: Recipe) -> dict[str, Any]:
    folder = folder_of(models, recipe)
    manifest = present(folder, recipe)
    return {
        "name": f"{recipe.name}@{VERSION}",
        "kind": recipe.kind.value,
        "folder": str(folder),
        "present": manifest is not None,
        "size_bytes": manifest.size_bytes if manifest else None,
        "digest": manifest.digest() if manifest else None,
        "measured": manifest.measured if manifest else {},
    }


def _line(record: dict[str, Any]) -> str:
    if not record["present"]:
        return f"{record['name']:<30} {record['kind']:<10} missing: run `modelyard models prepare`"
    size_mb = record["size_bytes"] / 1e6
    return f"{record['name']:<30} {record['kind']:<10} {size_mb:7.1f} MB  {record['digest'][:8]}"
