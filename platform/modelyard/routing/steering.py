"""What control last said, as far as routing goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Steering:
    """weights: percent of conversations on the canary, by rollout id; one not there is all stable.

    drained: apps of cells that get no new requests.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    drained: frozenset[str] = frozenset()


UNSTEERED = Steering()
