"""`modelyard keys new`: a key for a tenant, shown once."""

from __future__ import annotations

import secrets
from typing import Annotated, get_args

import typer
from pydantic import ValidationError

from modelyard.config.frozen import Role
from modelyard.config.table import describe
from modelyard.config.tenants import Key
from modelyard.contract.errors import ConfigError
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
    if unknown := sorted(set(role or ()) - set(get_args(Role))):
        raise typer.BadParameter(
            f"{unknown[0]!r} is not a role: use {', '.join(get_args(Role))}", param_hint="--role"
        )
    # A tenant's name may hold "_" and be longer than the id of a key.
    identifier = key_id or f"{tenant.replace('_', '-')[:57]}-{secrets.token_hex(3)}"
    key = new_key(identifier, secrets.token_urlsafe)
    record = {
        "id": identifier,
        "tenant": tenant,
        "sha256": hash_key(key),
        "roles": role or ["invoke"],
    }
    try:
        Key.model_validate(record)
    except ValidationError as error:
        # Before anything is printed: the table would refuse the line.
        raise ConfigError("\n".join(describe(error, Key, record))) from error
    roles = ", ".join(role or ["invoke"])
    typer.echo(key)
    # In quotes, because YAML reads some names as numbers, booleans or null.
    typer.echo(
        f'- {{id: "{identifier}", tenant: "{tenant}", sha256: "{hash_key(key)}", roles: [{roles}]}}'
    )
