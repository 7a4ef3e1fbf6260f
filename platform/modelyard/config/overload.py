"""What a route does when more is asked of it than its replicas can give."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen, Seconds, VersionName

QueueOrder = Literal["deadline", "shortest"]


class Overload(Frozen):
    """How a route's queue is ordered, and what its callers get instead of a refusal.

    order: inside one tenant, the earliest deadline first, or the shortest predicted answer first;
    `age_cap_s`: one that has waited so long goes before shorter ones. cap_output_tokens: the output
    of one answer while at least `cap_at_percent` of the queue's bound wait; None: never.
    fallback: a smaller version of the same kind for what the queue would refuse; None: a 503.
    """

    order: QueueOrder = "deadline"
    age_cap_s: Seconds = 2.0
    cap_output_tokens: Annotated[int, Field(gt=0)] | None = None
    cap_at_percent: float = Field(default=50.0, gt=0, le=100, allow_inf_nan=False)
    fallback: VersionName | None = None

    @model_validator(mode="after")
    def _options_have_a_use(self) -> Self:
        if "age_cap_s" in self.model_fields_set and self.order != "shortest":
            raise ValueError("age_cap_s is of no use without `order: shortest`: add it")
        if "cap_at_percent" in self.model_fields_set and self.cap_output_tokens is None:
            raise ValueError("cap_at_percent is of no use without cap_output_tokens: add it")
        return self
