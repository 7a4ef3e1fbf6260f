"""`modelyard rollout status ID --watch`."""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Protocol

import click
import typer

from modelyard.cli.admin_client import AdminRefused
from modelyard.cli.check import Output
from modelyard.cli.rollout_text import status_lines
from modelyard.rollout.phases import OVER


class Platform(Protocol):
    """The part of AdminClient that is used here."""

    def get(self, path: str) -> Any: ...


def watch(
    platform: Platform, path: str, every_s: float, output: Output, sleep: Callable[[float], None]
) -> int:
    """Show the rollout until it is over; 0 when it was promoted, else 1.

    JSON is a line a look. A platform that is away is said, and asked again: a rollout goes on
    without us. Raises AdminRefused for what asking again would not mend.
    """
    while True:
        view = _look(platform, path)
        if view is not None:
            _show(view, output)
            if view["phase"] in OVER:
                return 0 if view["phase"] == "Promoted" else 1
        sleep(every_s)


def _look(platform: Platform, path: str) -> dict[str, Any] | None:
    try:
        view: dict[str, Any] = platform.get(path)
    except AdminRefused as error:
        if error.status is not None and error.status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        typer.echo(f"{error} (asking again)", err=True)
        return None
    return view


def _show(view: dict[str, Any], output: Output) -> None:
    if output is Output.JSON:
        typer.echo(json.dumps(view))
        return
    click.clear()  # does nothing where this is no terminal
    typer.echo("\n".join(status_lines(view)) + "\n")
