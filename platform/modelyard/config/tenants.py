"""Tenants and their keys."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from modelyard.config.frozen import Arm, Frozen, Priority, Region, Role, TenantName, Tier

Feature = Literal["tools", "structured_outputs", "logprobs", "choices"]  # choices: n above 1

KeyId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9.-]{1,64}$")
]  # no "_": it separates the parts of a key


class Tenant(Frozen):
    """Who is calling, for routing and fairness, and what it is entitled to.

    `models`: aliases, or "*" for all. `region` is where its data must stay: a cluster of another
    region refuses it; left out, its data may be anywhere. `max_context_tokens` bounds prompt plus
    answer under the model's own limit. `features` left out: all of them. `judged`: it agreed that a
    rollout's judge may read samples of its prompts and answers.
    """

    tier: Tier = "free"
    region: Region | None = None
    priority: Priority = "interactive"
    models: tuple[str, ...] = ()
    arms: tuple[Arm, ...] = ("stable", "canary")
    max_context_tokens: Annotated[int, Field(gt=0)] | None = None
    features: tuple[Feature, ...] | None = None
    judged: bool = False

    @model_validator(mode="after")
    def _has_the_stable_arm(self) -> Self:
        if "stable" not in self.arms:
            raise ValueError("arms must hold stable: without a rollout there is no other")
        return self


class Key(Frozen):
    """A key's hash, never the key. A key without tenant can administer and scrape, not invoke."""

    id: KeyId
    tenant: TenantName | None = None
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    roles: tuple[Role, ...] = ("invoke",)
    expires: AwareDatetime | None = None

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
