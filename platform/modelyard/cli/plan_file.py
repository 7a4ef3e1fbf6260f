"""The Serve config in which a placement is kept: read before a plan, written after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer

from modelyard.artifacts.file_lock import FileLock
from modelyard.cli.plan_check import Fleet, check_rendered, require_deployable
from modelyard.config.checked import parse
from modelyard.config.document import load_document
from modelyard.config.serve_file import ServeFile
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from placement.parse import cells_of
from placement.plan import Cell, Plan

_MADE_BY_US: Final = b"# Made by `modelyard plan` from "


def previous_cells(serve: Path | None) -> tuple[Cell, ...]:
    """What the Serve config there has placed; nothing where there is none yet. Raises ConfigError
    for one that somebody wrote by hand, which must not be lost."""
    if serve is None or not serve.exists():
        return ()
    _require_ours(serve)
    document = load_document(serve)
    _, faults = parse(document, ServeFile, document.root, ())
    if faults:
        raise ConfigError(
            f"{faults[0]}. What is placed cannot be read from it: mend it, or use --fresh"
        )
    return cells_of(document.root)


@contextmanager
def alone_with(serve: Path | None) -> Iterator[None]:
    """From reading the Serve config to writing it, with no other plan or move in between. None for
    what writes none.

    Raises ConfigError when there is one: a move may take an hour, and nobody waits for that.
    """
    if serve is None or not serve.parent.is_dir():
        yield  # a lock would make the folder, where writing the file says that there is none
        return
    path = serve.resolve().with_name(f".{serve.resolve().name}.lock")
    lock = FileLock(path)
    try:
        # The one who had it may have removed it just now, and a third one made another.
        if not (lock.try_take() and lock.is_at(path)):
            raise ConfigError(
                f"{serve}: another `modelyard plan` is at work on it: try again when it has ended"
            )
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        lock.release()


def _require_ours(serve: Path) -> None:
    if serve.exists() and not serve.read_bytes().startswith(_MADE_BY_US):
        raise ConfigError(
            f"{serve}: is not made by `modelyard plan`, and would be lost: give another -o"
        )


def write_serve(fleet: Fleet, made: Plan, serve: Path) -> None:
    """Only what `modelyard check` lets pass. Raises FleetFaults."""
    _require_ours(serve)
    rendered = fleet.rendered(made)
    report = check_rendered(fleet, rendered, Settings.from_environment())
    for fault in report.faults:
        typer.echo(str(fault), err=True)
    require_deployable(report)
    same = serve.exists() and serve.read_bytes() == rendered
    if not same:
        write_whole(serve, rendered)
    typer.echo(f"{serve}: {'as it was' if same else 'written'}, {report.apps} apps", err=True)


def write_whole(path: Path, content: bytes) -> None:
    """Never half of it: what deploys may read it at any moment."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        aside.write_bytes(content)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)
