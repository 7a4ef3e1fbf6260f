"""`modelyard keys new`: a key for a tenant, shown once."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer

from modelyard.tenancy.keys import hash_key, new_key

app = typer.Typer(no_args_is_help=True)


@app.callback()
def keys() -> None:
    """Make API keys."""


@app.command()
def new(
    tenant: Annotated[str, typer.Option(help="The tenant the key belongs to.")],
    key_id: Annotated[str | None, typer.Option("--id", help="Default: TENANT-random.")] = None,
    role: Annotated[list[str] | None, typer.Option(help="Default: invoke. Repeatable.")] = None,
) -> None:
    """Print a new key, once, and the line for `keys` in the table, which holds only its hash."""
    identifier = key_id or f"{tenant}-{secrets.token_hex(3)}"
    key = new_key(identifier, secrets.token_urlsafe)
    roles = ", ".join(role or ["invoke"])
    typer.echo(key)
    typer.echo(
        f'- {{id: {identifier}, tenant: {tenant}, sha256: "{hash_key(key)}", roles: [{roles}]}}'
    )
