"""Routes: what an alias means, and the bounds under which it answers."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen, Seconds, TenantName, VersionName
from modelyard.config.overload import Overload
from modelyard.config.rollout import Rollout

CellName = Annotated[str, Field(pattern=r"^[a-z0-9]{1,16}$")]  # `b` of the app `m@1.0.0--b`

# Not 0: replicas are never so evenly busy that nobody would have to wait for a moment.
QueueBound = Annotated[int, Field(gt=0, le=10**12)]


class RouteLimits(Frozen):
    """Output caps in tokens, and how much may wait, at all ingresses together.

    default_max_output_tokens: runs when an OpenAI caller sends no cap. max_queued_tokens: of
    prompts and output caps. Each version that answers counts apart. Without them the
    queue has the bound alone that follows from the deadlines and from how fast replicas become
    free; it holds with them too.
    """

    max_output_tokens: int = Field(default=1024, gt=0)
    default_max_output_tokens: int = Field(default=256, gt=0)
    max_queued_requests: QueueBound | None = None
    max_queued_tokens: QueueBound | None = None

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


class Constraint(Frozen):
    """Where the requests of some tenants may go. `tenants` left out: everybody's.

    The first constraint that names a tenant holds for it. `cell`: these tenants have that cell of
    each version to themselves. `failover`: the version that answers when none of the arm's
    replicas is ready; left out, nothing does.
    """

    tenants: tuple[TenantName, ...] | None = None
    cell: CellName | None = None
    failover: VersionName | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.cell is not None and not self.tenants:
            raise ValueError("cell is dedicated to tenants: name them in tenants")
        if self.tenants == ():
            raise ValueError("tenants is empty: name some, or leave it out to mean everybody")
        return self


class Route(Frozen):
    """One alias. `stable` is the version that answers it, `canary` the one that may replace it."""

    stable: VersionName
    canary: VersionName | None = None
    rollout: Rollout | None = None
    constraints: tuple[Constraint, ...] = ()
    limits: RouteLimits = RouteLimits()
    deadlines: Deadlines = Deadlines()
    overload: Overload = Overload()

    @model_validator(mode="after")
    def _arms_are_two(self) -> Self:
        if self.canary == self.stable:
            raise ValueError(f"canary {self.canary!r} is the stable version: name another")
        if self.rollout is not None and self.canary is None:
            raise ValueError("rollout needs a canary: add the version it brings")
        return self

    @model_validator(mode="after")
    def _fallback_is_a_third(self) -> Self:
        """The canary is none: at a weight of 0, and for tenants without the arm, it is closed."""
        fallback = self.overload.fallback
        if fallback is not None and fallback in (self.stable, self.canary):
            arm = "stable version" if fallback == self.stable else "canary"
            raise ValueError(f"overload.fallback {fallback!r} is the {arm}: name another version")
        return self

    def versions(self) -> frozenset[str]:
        """Every version that may answer this alias."""
        failovers = (constraint.failover for constraint in self.constraints)
        named = (self.stable, self.canary, self.overload.fallback, *failovers)
        return frozenset(version for version in named if version is not None)
