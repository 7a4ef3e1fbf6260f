"""`modelyard usage`: requests and tokens by day, tenant, model and version."""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

import typer

from modelyard.cli.admin_client import AdminClient
from modelyard.cli.check import Output
from modelyard.config.settings import Settings

_COLUMNS: Final = (
    "day",
    "tenant",
    "model",
    "version",
    "requests",
    "refused",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
)


def usage(
    tenant: Annotated[str | None, typer.Option(help="Default: all of them.")] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Show what was used, the last 32 days; the present second may be missing."""
    with AdminClient.from_settings(Settings.from_environment()) as client:
        answer = client.get("/admin/usage", {"tenant": tenant} if tenant is not None else None)
    rows = answer["usage"]
    typer.echo(json.dumps(rows, indent=2) if output is Output.JSON else _as_text(rows))


def _as_text(rows: list[dict[str, Any]]) -> str:
    """A table with a total."""
    if not rows:
        return "nothing was used"
    total = {name: sum(row[name] for row in rows) for name in _COLUMNS[4:]}
    shown = [*rows, {"day": "total", "tenant": "", "model": "", "version": ""} | total]
    cells = [[str(row[name]) for name in _COLUMNS] for row in shown]
    cells.insert(0, list(_COLUMNS))
    widths = [max(len(line[index]) for line in cells) for index in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index < 4 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in cells
    )
