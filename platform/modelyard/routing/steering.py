"""What control last said, as far as routing goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Steering:
    """weights: percent of conversations on the canary, by rollout id; one not there is all stable.

    drained: apps of cells that get no new requests. finished: rollouts that never move again: at
    weight 0 rolled back, at 100 promoted. shadows: percent of requests copied to the canary.
    unloading: the drained apps whose model makes room for another. loads: seconds until a version
    should answer that waits for memory or loads into it.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    drained: frozenset[str] = frozenset()
    finished: frozenset[str] = frozenset()
    shadows: Mapping[str, float] = field(default_factory=dict)
    unloading: frozenset[str] = frozenset()
    loads: Mapping[str, float] = field(default_factory=dict)


UNSTEERED = Steering()
