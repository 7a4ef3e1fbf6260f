"""`modelyard models`: make, list, show, import, push, pull and verify versions of models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from modelyard.artifacts.manifest import Manifest
from modelyard.artifacts.starter.prepare import RECIPES, folder_of, prepare_all, present
from modelyard.artifacts.starter.recipe import VERSION, Recipe
from modelyard.artifacts.stores import Store, open_store
from modelyard.cli.check import Output
from modelyard.cli.models_import import import_
from modelyard.cli.models_registry import (
    OutputOption,
    StoreOption,
    one_sentence,
    pull_version,
    push,
    show,
    verify_version,
)
from modelyard.config.settings import Settings, expand
from modelyard.contract.errors import ArtifactError

app = typer.Typer(help="Versions of models.", no_args_is_help=True)
app.command()(show)
app.command("import")(import_)
app.command()(push)
app.command("pull")(pull_version)
app.command("verify")(verify_version)

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
    with one_sentence():
        prepare_all(_folder(models), only, typer.echo, hashes=verify)


@app.command(name="list")
def list_models(
    models: Models = None,
    store: StoreOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Each version in a store, with its size and digest.

    Of the models' folder also the starter models that are not there. Exit code 1: one is missing,
    or cannot be read.
    """
    if models is not None and store is not None:
        raise typer.BadParameter("choose one of --models and --store")
    with one_sentence():
        folder = _folder(models)
        uri = store or folder.as_uri()
        where = open_store(uri, Settings.from_environment().home)
        records = [] if store else [_starter(folder, recipe) for recipe in RECIPES]
        # Before the first version is made there is no models' folder.
        if store or folder.is_dir():
            records += _others(where, {record["name"] for record in records})
    if output is Output.JSON:
        typer.echo(json.dumps(records, indent=2))
    else:
        typer.echo("\n".join(_line(record) for record in records) or f"{uri}: no versions yet")
    raise typer.Exit(0 if all(record["present"] for record in records) else 1)


def _folder(models: Path | None) -> Path:
    if models is None:
        return Settings.from_environment().models
    return expand(str(models), "--models").absolute()


def _starter(models: Path, recipe: Recipe) -> dict[str, Any]:
    folder = folder_of(models, recipe)
    manifest = present(folder, recipe)
    missing = "missing: run `modelyard models prepare`" if manifest is None else None
    name = f"{recipe.name}@{VERSION}"
    return {"name": name, "kind": recipe.kind.value, "folder": str(folder)} | _facts(
        manifest, missing
    )


def _others(store: Store, listed: set[str]) -> Iterator[dict[str, Any]]:
    for name in store.names():
        for version in store.versions(name):
            if f"{name}@{version}" not in listed:
                yield _stored(store, name, version)


def _stored(store: Store, name: str, version: str) -> dict[str, Any]:
    try:
        manifest = store.find(name, version).manifest
    except ArtifactError as error:
        # One that cannot be read must not hide the others.
        facts = {"kind": "?"} | _facts(None, str(error))
    else:
        facts = {"kind": manifest.kind.value} | _facts(manifest, None)
    return {"name": f"{name}@{version}", "uri": f"{store.uri}/{name}/{version}"} | facts


def _facts(manifest: Manifest | None, error: str | None) -> dict[str, Any]:
    return {
        "present": manifest is not None,
        "size_bytes": manifest.size_bytes if manifest else None,
        "digest": manifest.digest() if manifest else None,
        "measured": manifest.measured if manifest else {},
        "error": error,
    }


def _line(record: dict[str, Any]) -> str:
    head = f"{record['name']:<30} {record['kind']:<10}"
    if not record["present"]:
        return f"{head} {record['error']}"
    return f"{head} {record['size_bytes'] / 1e6:7.1f} MB  {record['digest'][:8]}"
