"""The table: aliases, tenants and keys. One frozen model, given whole to every ingress replica."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from modelyard.config.explain import explain
from modelyard.config.faults import dotted, scalar_at, value_at
from modelyard.contract.errors import ConfigError

SCHEMA: Final = "modelyard/table/v1"

Alias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._/-]{1,128}$")]
# No "--" in either part: it separates the cell in an app's name.
VersionName = Annotated[
    str, Field(pattern=r"^[a-z0-9]+([._-][a-z0-9]+)*@[0-9A-Za-z]+([._-][0-9A-Za-z]+)*$")
]
TenantName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
KeyId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9.-]{1,64}$")
]  # no "_": it separates the parts of a key
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Role = Literal["invoke", "evaluate", "admin", "scrape"]
Priority = Literal["interactive", "batch", "shadow"]


class Frozen(BaseModel):
    """Unknown keys are errors, and nothing changes after parsing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RouteLimits(Frozen):
    """Output caps in tokens. The default runs when an OpenAI caller sends no cap."""

    max_output_tokens: int = Field(default=1024, gt=0)
    default_max_output_tokens: int = Field(default=256, gt=0)

    @model_validator(mode="after")
    def _default_within_maximum(self) -> Self:
        if self.default_max_output_tokens > self.max_output_tokens:
            raise ValueError(
                f"default_max_output_tokens {self.default_max_output_tokens} is above "
                f"max_output_tokens {self.max_output_tokens}: lower it, or raise the maximum"
            )
        return self


class Deadlines(Frozen):
    """Seconds: to the first token, between tokens, in all. A caller may lower, never raise them."""

    first_token_s: Seconds = 10.0
    idle_s: Seconds = 15.0
    total_s: Seconds = 60.0
    early_status_s: Seconds = 10.0

    @model_validator(mode="after")
    def _within_total(self) -> Self:
        for name in ("first_token_s", "idle_s"):
            if getattr(self, name) > self.total_s:
                raise ValueError(
                    f"{name} {getattr(self, name):g} is above total_s {self.total_s:g}: lower it"
                )
        return self


class Route(Frozen):
    """One alias. `stable` is the version that answers it."""

    stable: VersionName
    limits: RouteLimits = RouteLimits()
    deadlines: Deadlines = Deadlines()


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


class Table(Frozen):
    """Everything an ingress needs to answer: routes by alias, tenants by name, keys."""

    schema_: Literal["modelyard/table/v1"] = Field(alias="schema")
    routes: dict[Alias, Route] = Field(min_length=1)
    tenants: dict[TenantName, Tenant] = Field(default_factory=dict)
    keys: tuple[Key, ...] = ()
    max_body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024, le=256 * 1024 * 1024)

    @model_validator(mode="after")
    def _keys_are_unique(self) -> Self:
        ids: set[str] = set()
        holders: dict[str, str] = {}
        for key in self.keys:
            if key.id in ids:
                raise ValueError(f"two keys have the id {key.id!r}: ids must be unique")
            if key.sha256 in holders:
                raise ValueError(
                    f"keys {holders[key.sha256]!r} and {key.id!r} have one sha256, and only one of "
                    "them could count: make a new key with `modelyard keys new`"
                )
            ids.add(key.id)
            holders[key.sha256] = key.id
        return self

    @model_validator(mode="after")
    def _names_resolve(self) -> Self:
        for key in self.keys:
            if key.tenant is not None and key.tenant not in self.tenants:
                raise ValueError(
                    f"key {key.id!r} names the tenant {key.tenant!r}, which is not in tenants: "
                    "add it"
                )
        for name, tenant in self.tenants.items():
            for alias in tenant.models:
                if alias != "*" and alias not in self.routes:
                    raise ValueError(
                        f"tenant {name!r} lists the model {alias!r}, which is not in routes"
                    )
        return self

    def digest(self) -> str:
        record = self.model_dump(mode="json", by_alias=True)
        return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


def parse_table(record: Any, source: str = "user_config") -> Table:
    """A table from plain data. Raises ConfigError: one line per fault, with its path and value."""
    try:
        return Table.model_validate(record)
    except ValidationError as error:
        lines = describe(error, Table, record)
        raise ConfigError("\n".join(f"{source}: {line}" for line in lines)) from error


def describe(error: ValidationError, model: type[BaseModel], record: Any) -> list[str]:
    """pydantic's faults as `path: value: what is wrong`. Containers are not echoed, scalars are."""
    lines = []
    for problem in explain(error, model, record):
        value = scalar_at(problem.path, value_at(record, problem.path))
        shown = "" if value is None else f" {value!r}:"
        lines.append(f"{dotted(problem.path) or '(top)'}:{shown} {problem.message}")
    return lines
