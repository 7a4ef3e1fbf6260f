"""The table: aliases, tenants and keys. One frozen model, given whole to every ingress replica."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from modelyard.config.explain import explain
from modelyard.config.faults import dotted, scalar_at, value_at
from modelyard.config.frozen import Alias, Frozen, Region, TenantName, Tier
from modelyard.config.issuers import Issuer
from modelyard.config.overload import Overload
from modelyard.config.quotas import Quota
from modelyard.config.routes import Route
from modelyard.config.swap import PlaceName, SwapArea
from modelyard.config.tenants import Key, Tenant
from modelyard.config.tiers import TierSettings
from modelyard.contract.errors import ConfigError

SCHEMA: Final = "modelyard/table/v1"
_PLAIN: Final = TierSettings()


class TableKeys(Frozen):
    """The table's keys, which a fleet spec has too: routes by alias, tenants by name, keys, quotas.

    tiers: those whose weight is not 1.
    """

    region: Region = "local"
    routes: dict[Alias, Route] = Field(min_length=1)
    tiers: dict[Tier, TierSettings] = Field(default_factory=dict)
    tenants: dict[TenantName, Tenant] = Field(default_factory=dict)
    keys: tuple[Key, ...] = ()
    issuers: tuple[Issuer, ...] = ()
    quotas: dict[TenantName, Quota] = Field(default_factory=dict)
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

    @model_validator(mode="after")
    def _tenants_exist(self) -> Self:
        for name in self.quotas:
            if name not in self.tenants:
                raise ValueError(f"quotas names the tenant {name!r}, which is not in tenants")
        for alias, route in self.routes.items():
            named = [t for c in route.constraints for t in c.tenants or ()]
            named += route.rollout.tenants or () if route.rollout else ()
            for name in named:
                if name not in self.tenants:
                    raise ValueError(
                        f"route {alias!r} names the tenant {name!r}, which is not in tenants"
                    )
        return self

    @model_validator(mode="after")
    def _issuers_are_unique(self) -> Self:
        names = [one.issuer for one in self.issuers]
        if len(set(names)) != len(names):
            raise ValueError("two issuers have one name: a token could not say which it is from")
        return self

    def weight_of(self, tier: str) -> float:
        return self.tiers.get(tier, _PLAIN).weight

    def overload_of(self, version: str) -> Overload:
        """How the queue of a version is ordered, which all routes to it share: as the first route
        says whose stable version it is, else the first that may send to it."""
        routes = [route for route in self.routes.values() if version in route.versions()]
        first = next((route for route in routes if route.stable == version), None)
        return first.overload if first else routes[0].overload if routes else Overload()


class Table(TableKeys):
    """Everything an ingress needs to answer.

    swap_areas: what models that are not always loaded share, by name; written by `modelyard plan`.
    """

    schema_: Literal["modelyard/table/v1"] = Field(alias="schema")
    swap_areas: dict[PlaceName, SwapArea] = Field(default_factory=dict)

    @property
    def swapped(self) -> frozenset[str]:
        """The versions of all swap areas."""
        return frozenset(version for area in self.swap_areas.values() for version in area.models)

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
