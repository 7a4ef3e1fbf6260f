"""Whether the canary has the replicas for its next weight. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Demand:
    """ready and slots: replicas of a version that may be sent requests, and the requests that they
    take at once. requests: running and waiting, on both versions, at all ingresses: the most of
    the last minute."""

    ready: int
    slots: int
    requests: int


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a weight needs, and what there is."""

    ready: int
    slots: int
    needed_slots: int

    @property
    def enough(self) -> bool:
        return self.ready >= 1 and self.slots >= self.needed_slots

    @property
    def needed_replicas(self) -> int:
        """At least one, even for no traffic: the first request would wait for a load. Until one is
        ready nobody knows how many requests it takes, so that more are asked for afterwards."""
        if self.ready < 1 or self.slots < 1:
            return 1
        return max(1, math.ceil(self.needed_slots * self.ready / self.slots))

    @property
    def words(self) -> str:
        """What is missing, empty when nothing is."""
        if self.ready < 1:
            return "a ready replica of the canary"
        if not self.enough:
            return f"replicas of the canary: {self.slots} of {self.needed_slots} slots are ready"
        return ""


def capacity_for(percent: float, demand: Demand) -> Capacity:
    """By what ran and waited at once: a bigger share of the same traffic."""
    needed = math.ceil(percent / 100 * demand.requests - 1e-9)  # 25 % of 4 is 1, not 2
    return Capacity(demand.ready, demand.slots, needed)
