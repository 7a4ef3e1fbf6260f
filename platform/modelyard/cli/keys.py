"""`modelyard keys`: new ones, shown once; which there are; and revoking one at once."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import quote

import typer
from pydantic import ValidationError

from modelyard.cli.admin_client import AdminClient, AdminRefused
from modelyard.cli.check import Output
from modelyard.config.document import load_document
from modelyard.config.frozen import Role
from modelyard.config.settings import Settings
from modelyard.config.table import Table, describe, parse_table
from modelyard.config.target import read_target
from modelyard.config.tenants import Key
from modelyard.contract.errors import ConfigError
from modelyard.tenancy.key_list import KeyLine, list_keys, state_of
from modelyard.tenancy.keys import expiry_of, hash_key, new_key

app = typer.Typer(no_args_is_help=True)


@app.callback()
def keys() -> None:
    """Make, list and revoke API keys."""


@app.command()
def new(
    tenant: Annotated[
        str | None, typer.Option(help="The tenant the key belongs to; none for an operator's.")
    ] = None,
    key_id: Annotated[str | None, typer.Option("--id", help="Default: TENANT-random.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="Default: invoke. Repeatable.")] = None,
    expires: Annotated[
        str | None, typer.Option(metavar="WHEN", help="12h, 30d, 8w, or a date. Default: never.")
    ] = None,
) -> None:
    """Print a new key, once, and the line for `keys` in the table, which holds only its hash."""
    if unknown := sorted(set(role or ()) - set(get_args(Role))):
        raise typer.BadParameter(
            f"{unknown[0]!r} is not a role: use {', '.join(get_args(Role))}", param_hint="--role"
        )
    # A tenant's name may hold "_" and be longer than the id of a key.
    owner = (tenant or "ops").replace("_", "-")[:57]
    identifier = key_id or f"{owner}-{secrets.token_hex(3)}"
    key = new_key(identifier, secrets.token_urlsafe)
    record: dict[str, Any] = {"id": identifier}
    if tenant is not None:
        record["tenant"] = tenant
    record |= {"sha256": hash_key(key), "roles": role or ["invoke"]}
    if expires is not None:
        record["expires"] = expiry_of(expires, datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        Key.model_validate(record)
    except ValidationError as error:
        # Before anything is printed: the table would refuse the line.
        raise ConfigError("\n".join(describe(error, Key, record))) from error
    typer.echo(key)
    typer.echo(_yaml_line(record))


def _yaml_line(record: dict[str, Any]) -> str:
    """In quotes, because YAML reads some names as numbers, booleans, dates or null."""
    parts = [
        f"{name}: [{', '.join(value)}]" if name == "roles" else f'{name}: "{value}"'
        for name, value in record.items()
    ]
    return f"- {{{', '.join(parts)}}}"


@app.command(name="list")
def list_(
    config: Annotated[
        Path | None,
        typer.Option(help="A Serve config or a table. Default: what the running platform has."),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Show every key: its tenant, roles, expiry and state. The keys themselves are nowhere."""
    if config is None:
        with AdminClient.from_settings(Settings.from_environment()) as admin:
            records = _listed(admin.get("/admin/keys"))
    else:
        # A file does not know what was revoked: that is the running platform's.
        lines = list_keys(_table_in(config).keys, frozenset(), datetime.now(UTC))
        records = [line.as_record() for line in lines]
    if output is Output.JSON:
        typer.echo(json.dumps(records, indent=2))
        return
    heads = {"id": "id", "tenant": "tenant", "roles": ["roles"], "expires": "expires"}
    for record in [heads | {"state": "state"}, *records]:
        typer.echo(_text_line(record))


@app.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The key's id, not the key.")],
    reason: Annotated[
        str, typer.Option(help="Kept with the order, beside the id of your key.")
    ] = "revoked by an operator",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print.")] = Output.TEXT,
) -> None:
    """Refuse a key from now on, at every ingress within a second."""
    if key_id.startswith("my_"):
        # It would be sent, logged and kept.
        raise typer.BadParameter("give the id of the key, which `modelyard keys list` shows")
    path = f"/admin/keys/{quote(key_id, safe='')}/revoke"
    with AdminClient.from_settings(Settings.from_environment()) as admin:
        answer = admin.post(path, {"reason": reason})
    if output is Output.JSON:
        typer.echo(json.dumps(answer, indent=2))
        return
    typer.echo(
        f"{key_id} is revoked. Remove its line from `keys` in the table too: the platform's memory "
        "of what was revoked does not belong to the file"
    )
    if not answer.get("published", True):
        typer.echo("the board did not take it yet: each ingress hears of it when it next reports")


def _listed(answer: Any) -> list[dict[str, Any]]:
    """The list in an answer. Raises AdminRefused."""
    try:
        return [_of_platform(record) for record in answer["keys"]]
    except (LookupError, TypeError, ValueError) as error:
        raise AdminRefused(
            "the platform answered no list of keys: is it of another release?"
        ) from error


def _of_platform(record: dict[str, Any]) -> dict[str, Any]:
    """A key of GET /admin/keys, with its state."""
    given = record["expires"]
    expires = None if given is None else datetime.fromisoformat(given)
    state = state_of(record["revoked"], expires, datetime.now(UTC))
    line = KeyLine(record["id"], record["tenant"], tuple(record["roles"]), given, state)
    return line.as_record()


def _table_in(path: Path) -> Table:
    """Raises DocumentError, ConfigError."""
    root = load_document(path).root
    if "applications" not in root:
        return parse_table(root, str(path))
    try:
        return read_target(path).table
    except (LookupError, StopIteration, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path} has no ingress with a table: run `modelyard check {path}`"
        ) from error


def _text_line(record: dict[str, Any]) -> str:
    roles = ",".join(record["roles"])
    return (
        f"{record['id']:<32} {record['tenant'] or '-':<24} {roles:<20} "
        f"{record['expires'] or 'never':<22} {record['state']}"
    )
