"""`modelyard check FILE`: what is wrong with a config, before anything is deployed."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from modelyard.artifacts.store import resolve
from modelyard.config.check import Report, check_document
from modelyard.config.document import load_document
from modelyard.config.faults import DocumentError
from modelyard.config.settings import Settings


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


def check(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="A Serve config or a table.")],
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Check a Serve config or a table. Exit code 0: fine, 1: faults, 2: wrong usage."""
    # Not path.exists(): that raises for a name that is too long.
    if not os.path.exists(path):
        typer.echo(f"{path}: no such file: check the path", err=True)
        raise typer.Exit(2)
    try:
        report = check_file(path)
    except DocumentError as error:
        report = Report((error.fault,))
    typer.echo(_as_json(path, report) if output is Output.JSON else _as_text(report))
    raise typer.Exit(0 if report.ok else 1)


def check_file(path: Path) -> Report:
    """Check one file, with artifacts looked up in this installation. Raises DocumentError."""
    home = Settings.from_environment().home
    return check_document(load_document(path), lambda uri: resolve(uri, home))


def _as_text(report: Report) -> str:
    lines = [str(fault) for fault in report.faults]
    if report.ok:
        lines.append(
            f"ok: {report.apps} apps, {report.routes} routes, digest {(report.digest or '')[:12]}"
        )
    return "\n".join(lines)


def _as_json(path: Path, report: Report) -> str:
    record = {
        "ok": report.ok,
        "file": str(path),
        "apps": report.apps,
        "routes": report.routes,
        "digest": report.digest,
        "faults": [fault.as_record() for fault in report.faults],
    }
    return json.dumps(record, indent=2)
