"""Tenants and their keys."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen, Priority, Role, TenantName

KeyId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9.-]{1,64}$")
]  # no "_": it separates the parts of a key


class Tenant(Frozen):
    """Who is calling, for routing and fairness. models: aliases, or "*" for all."""

    tier: str = Field(default="free", pattern=r"^[a-z0-9-]{1,32}$")
    region: str = Field(default="local", pattern=r"^[a-z0-9-]{1,32}$")
    priority: Priority = "interactive"
    models: tuple[str, ...] = ()


class Key(Frozen):
    """A key's hash, never the key. A key without tenant can administer and scrape, not invoke."""

    id: KeyId
    tenant: TenantName | None = None
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    roles: tuple[Role, ...] = ("invoke",)

    @model_validator(mode="after")
    def _roles_are_of_use(self) -> Self:
        if not self.roles:
            raise ValueError(f"key {self.id!r} has no roles: add one, or remove the key")
        if self.tenant is None and set(self.roles) & {"invoke", "evaluate"}:
            raise ValueError(
                f"key {self.id!r} may invoke but names no tenant: add tenant, or drop the role"
            )
        if "evaluate" in self.roles and "invoke" not in self.roles:
            raise ValueError(
                f"key {self.id!r} may evaluate but not invoke, so it could call nothing: add invoke"
            )
        return self
