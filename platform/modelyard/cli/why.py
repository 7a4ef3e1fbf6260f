"""`modelyard why REQUEST_ID`: what became of one request, in words."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import quote

import typer

from modelyard.cli.admin_client import AdminClient, AdminRefused
from modelyard.cli.check import Output
from modelyard.config.settings import Settings
from modelyard.control.why import find_in_logs, in_words


def why(
    request_id: Annotated[str, typer.Argument(metavar="REQUEST_ID", help="Its X-Request-Id.")],
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Tell what became of a request. Asks every ingress, or reads this machine's logs.

    Exit code 1 when no log holds it.
    """
    settings = Settings.from_environment()
    lines, missing = _lines(settings, request_id)
    if not lines:
        typer.echo(missing, err=True)
        raise typer.Exit(1)
    if output is Output.JSON:
        typer.echo(json.dumps({"request_id": request_id, "lines": lines}, indent=2))
        return
    for line in lines:
        first, *rest = in_words(line)
        typer.echo("\n  ".join((first, *rest)))


def _lines(settings: Settings, request_id: str) -> tuple[list[dict[str, Any]], str]:
    """The log's lines, and what to say where there are none."""
    missing = f"no log holds the request {request_id}"
    if settings.api_key is None:
        source = f"only {settings.logs} was read: set MODELYARD_API_KEY to ask every ingress"
        return find_in_logs(settings.logs, request_id), f"{missing} ({source})"
    try:
        with AdminClient.from_settings(settings) as client:
            answer = client.get(f"/admin/why/{quote(request_id, safe='')}")
    except AdminRefused as error:
        # Also where the platform is down: that is when an operator asks.
        lines = find_in_logs(settings.logs, request_id)
        if error.status == HTTPStatus.NOT_FOUND:  # then its text is this sentence already
            return lines, f"{error} ({settings.logs} was read too)"
        return lines, f"{missing} ({error}; {settings.logs} was read)"
    return answer["lines"], f"{missing} (every ingress was asked)"
