"""`modelyard check FILE`: what is wrong with a config, before anything is deployed."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from modelyard.artifacts.store import resolve
from modelyard.cli.check_live import LiveCheck, check_live
from modelyard.cli.live_inventory import LiveInventory, live_inventory
from modelyard.config.check import Report, check_document
from modelyard.config.document import load_document
from modelyard.config.faults import DocumentError
from modelyard.config.fleet_file import is_fleet
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError


class Output(StrEnum):
    TEXT = "text"
    JSON = "json"


def check(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="A Serve config, a table or a fleet spec.")
    ],
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Also say what a deploy would do to what runs; of a fleet spec, which of its "
            "machines are not there.",
        ),
    ] = False,
) -> None:
    """Check a Serve config, a table or a fleet spec. Exit code 0: fine, 1: faults, 2: wrong usage.

    With --live also 1 where a deploy would drop an app that is still needed, or a machine is not
    there.
    """
    # Not path.exists(): that raises for a name that is too long.
    if not os.path.exists(path):
        typer.echo(f"{path}: no such file: check the path", err=True)
        raise typer.Exit(2)
    try:
        report = check_file(path)
    except DocumentError as error:
        report = Report((error.fault,))
    compared = _live(path, report) if live and report.ok else None
    as_text = output is Output.TEXT
    typer.echo(_as_text(report, compared) if as_text else _as_json(path, report, compared))
    raise typer.Exit(0 if report.ok and (compared is None or compared.ok) else 1)


def check_file(path: Path) -> Report:
    """Check one file, with artifacts looked up in this installation. Raises DocumentError."""
    settings = Settings.from_environment()
    document = load_document(path)
    if is_fleet(document):
        # The planner's solver takes most of a second to load, and nothing else here needs it.
        from modelyard.cli.plan_check import check_fleet_file

        return check_fleet_file(document, settings)
    return check_document(document, lambda uri: resolve(uri, settings.home))


def _live(path: Path, report: Report) -> LiveCheck | LiveInventory:
    if is_fleet(load_document(path)):
        return live_inventory(path)
    if report.apps == 0:
        raise ConfigError(f"{path}: --live is of a Serve config: give what `serve deploy` takes")
    return check_live(path)


def _as_text(report: Report, live: LiveCheck | LiveInventory | None) -> str:
    lines = [str(fault) for fault in report.faults]
    if report.ok:
        lines.append(
            f"ok: {report.apps} apps, {report.routes} routes, digest {(report.digest or '')[:12]}"
        )
    return "\n".join([*lines, *(live.lines() if live is not None else ())])


def _as_json(path: Path, report: Report, live: LiveCheck | LiveInventory | None) -> str:
    record = {
        "ok": report.ok,
        "file": str(path),
        "apps": report.apps,
        "routes": report.routes,
        "digest": report.digest,
        "faults": [fault.as_record() for fault in report.faults],
    } | ({"live": live.as_record()} if live is not None else {})
    return json.dumps(record, indent=2)
