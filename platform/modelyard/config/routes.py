"""Routes: what an alias means, and the bounds under which it answers."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen, Seconds, VersionName


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
