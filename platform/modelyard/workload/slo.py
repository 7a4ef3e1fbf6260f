"""What latency counts as good."""

from __future__ import annotations

import math
import re
from typing import Annotated, Final, Self

from pydantic import Field

from modelyard.config.frozen import Frozen
from modelyard.contract.errors import ConfigError

_PART: Final = re.compile(r"(ttft|e2e|itl)=(\d+(?:\.\d+)?)(us|ms|s|m)")
_UNITS_S: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


Bound = Annotated[float | None, Field(gt=0, allow_inf_nan=False)]


class Slo(Frozen):
    """Bounds for one request, None: not bounded.

    ttft_s and itl_s bound streams only: the caller of a unary request sees no first token.
    itl_s bounds the mean gap between the tokens of one request: what a reader feels is the pace.
    """

    ttft_s: Bound = None
    e2e_s: Bound = None
    itl_s: Bound = None

    def met(self, e2e_s: float, ttft_s: float | None, mean_itl_s: float | None) -> bool:
        """None: not seen. A bound on what was not seen is not met: nothing says that it was."""
        pairs = ((self.e2e_s, e2e_s), (self.ttft_s, ttft_s), (self.itl_s, mean_itl_s))
        return all(bound is None or (seen is not None and seen <= bound) for bound, seen in pairs)

    def unmeasured(self, ttft_s: float | None, mean_itl_s: float | None) -> bool:
        """Whether there is a bound on a time that was not seen."""
        pairs = ((self.ttft_s, ttft_s), (self.itl_s, mean_itl_s))
        return any(bound is not None and seen is None for bound, seen in pairs)

    @property
    def of_unary(self) -> Slo:
        """What of it bounds an answer that comes as a whole."""
        return Slo(e2e_s=self.e2e_s)

    @classmethod
    def parse(cls, text: str) -> Self:
        """From `ttft=1s,e2e=10s,itl=100ms`, any of them. Raises ConfigError."""
        bounds: dict[str, float] = {}
        for part in text.split(","):
            match = _PART.fullmatch(part.strip())
            bound_s = float(match[2]) * _UNITS_S[match[3]] if match else 0.0
            if match is None or f"{match[1]}_s" in bounds or not 0 < bound_s < math.inf:
                raise ConfigError(
                    f"{part!r} is no bound: write ttft, e2e or itl, once each, with a time above 0:"
                    " ttft=1s,e2e=10s,itl=100ms"
                )
            bounds[f"{match[1]}_s"] = bound_s
        return cls(**bounds)

    def __str__(self) -> str:
        given = [
            f"{name} <= {bound * 1000:g} ms"
            for name, bound in (("ttft", self.ttft_s), ("itl", self.itl_s), ("e2e", self.e2e_s))
            if bound is not None
        ]
        return ", ".join(given) or "none: whatever completes is good"
