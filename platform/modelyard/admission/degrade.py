"""What a request gets when too much waits: a shorter answer, or one of a smaller model.

Each choice is made anew for each request, with nothing remembered: a cap lets the queue shrink, a
queue below the threshold ends the caps, and between the two it settles by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.config.overload import Overload
from modelyard.contract.features import features_of
from modelyard.contract.operations import Operation
from modelyard.lifecycle.report import Description

FULL: Final = 1.0  # the pressure from which on the queue refuses


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a request bears on its degradation.

    input_tokens: estimated, of all its prompts. cap_tokens, min_tokens: of one answer.
    """

    input_tokens: int
    cap_tokens: int
    min_tokens: int = 0
    uses_tools: bool = False
    is_structured: bool = False
    names_version: bool = False

    @classmethod
    def of(
        cls,
        alias: str,
        operation: Operation,
        body: Mapping[str, Any],
        input_tokens: int,
        cap_tokens: int,
    ) -> Asked:
        """Read a validated body, as its caller sent it or as the engine gets it."""
        features = features_of(operation, body)
        return cls(
            input_tokens,
            cap_tokens,
            min_tokens=body.get("min_tokens") or 0,
            uses_tools="tools" in features,
            is_structured="structured_outputs" in features,
            names_version="@" in alias,
        )


@dataclass(frozen=True, slots=True)
class Capped:
    """At most so many tokens in each answer."""

    cap_tokens: int

    @property
    def said(self) -> str:
        """The value of `X-Degraded`, and the log's `degraded`."""
        return f"max_output_tokens={self.cap_tokens}"


@dataclass(frozen=True, slots=True)
class FellBack:
    """Another version answers."""

    version: str

    @property
    def said(self) -> str:
        return f"fallback={self.version}"


def degrade(
    overload: Overload, asked: Asked, pressure: float, fallback: Description | None
) -> Capped | FellBack | None:
    """How a request is made smaller; None when it is not.

    pressure: what waits over what may wait; FULL for a request that the queue has refused or
    evicted. fallback: of the route's fallback, None where it has no replica for this caller. A full
    queue's requests fall back, and are not capped as well: one loss at a time. Those that cannot
    fall back are capped, since the queue may still take them in place of a lower band's.
    """
    if asked.names_version:
        return None  # whoever names a version measures that version
    if pressure >= FULL and fallback is not None and _fits(asked, fallback):
        return FellBack(fallback.version)
    cap = overload.cap_output_tokens
    if cap is None or pressure * 100 < overload.cap_at_percent or cap >= asked.cap_tokens:
        return None
    # Cut in its middle, JSON and the arguments of a call are of no use to anybody.
    if asked.uses_tools or asked.is_structured or asked.min_tokens > cap:
        return None
    return Capped(cap)


def _fits(asked: Asked, fallback: Description) -> bool:
    """Whether the smaller model can give the whole of what was asked: a 400 for what its caller was
    promised would be worse than a 503. Chat templates of small models often leave tools out."""
    most = fallback.max_output_tokens
    if asked.uses_tools or (most is not None and asked.cap_tokens > most):
        return False
    return asked.input_tokens + asked.cap_tokens <= fallback.max_context_tokens
