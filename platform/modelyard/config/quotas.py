"""Quotas: what a tenant may use in a minute, and at once."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen

Amount = Annotated[int, Field(gt=0, le=10**12)]


class Limits(Frozen):
    """Of one model class. A pair left out is not limited; a burst left out is a minute's amount.

    Bursts bound what one request may reserve: its input, and its output cap times its answers.
    """

    input_tokens_per_min: Amount | None = None
    input_burst_tokens: Amount | None = None
    output_tokens_per_min: Amount | None = None
    output_burst_tokens: Amount | None = None
    requests_per_min: Amount | None = None
    request_burst: Amount | None = None
    max_active_sequences: Amount | None = None

    @model_validator(mode="after")
    def _bursts_have_rates(self) -> Self:
        for burst, rate in (
            ("input_burst_tokens", "input_tokens_per_min"),
            ("output_burst_tokens", "output_tokens_per_min"),
            ("request_burst", "requests_per_min"),
        ):
            if getattr(self, burst) is not None and getattr(self, rate) is None:
                raise ValueError(f"{burst} is of no use without {rate}: add it")
        return self


class Quota(Limits):
    """A tenant's. The limits are those of generators; `small` holds those of the other models.

    `shadow` counts and reports what would be refused, and refuses nothing.
    """

    mode: Literal["enforce", "shadow"] = "enforce"
    small: Limits | None = None
