"""How many tokens a request has: distributions, and how to write them in one word."""

from __future__ import annotations

import math
import random
from typing import Literal, Self

from pydantic import Field, model_validator

from modelyard.config.frozen import Frozen
from modelyard.workload.one_of import OneOf
from modelyard.workload.trace import MAX_TOKENS, Traces


class Uniform(Frozen):
    """Both ends included."""

    low: int = Field(ge=1, le=MAX_TOKENS)
    high: int = Field(ge=1, le=MAX_TOKENS)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError("low is above high: exchange them")
        return self

    def draw(self, rng: random.Random, traces: Traces) -> int:
        return rng.randint(self.low, self.high)


class Lognormal(Frozen):
    """sigma: standard deviation of the logarithm; 0.8 is usual of prompts. Cut at `max`."""

    median: float = Field(gt=0, le=MAX_TOKENS)
    sigma: float = Field(ge=0, le=5)
    max: int = Field(default=MAX_TOKENS, ge=1, le=MAX_TOKENS)

    def draw(self, rng: random.Random, traces: Traces) -> int:
        return min(self.max, max(1, round(rng.lognormvariate(math.log(self.median), self.sigma))))


class FromTrace(Frozen):
    """The column of a recorded trace, drawn with replacement. Cut at `max`."""

    file: str = Field(min_length=1)
    column: Literal["input_tokens", "output_tokens"]
    max: int = Field(default=MAX_TOKENS, ge=1, le=MAX_TOKENS)

    def draw(self, rng: random.Random, traces: Traces) -> int:
        tokens = getattr(rng.choice(traces[self.file].requests), self.column)
        return min(self.max, max(1, int(tokens)))


class Lengths(OneOf):
    """One of the distributions, by its name."""

    fixed: int | None = Field(default=None, ge=1, le=MAX_TOKENS)
    uniform: Uniform | None = None
    lognormal: Lognormal | None = None
    trace: FromTrace | None = None

    def draw(self, rng: random.Random, traces: Traces) -> int:
        """Tokens, at least 1."""
        if self.fixed is not None:
            return self.fixed
        tokens: int = self.value.draw(rng, traces)
        return tokens
