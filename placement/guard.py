"""Whether now is a time to move replicas at all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Load:
    """in_flight, slots: requests, and how many all ready replicas take at once, by version.
    waiting: requests without a slot. rollouts: those in progress. frozen: by whom everything that
    moves by itself is held, "" by nobody. known: whether the board could be read.
    """

    in_flight: Mapping[str, float] = field(default_factory=dict)
    slots: Mapping[str, int] = field(default_factory=dict)
    waiting: int = 0
    rollouts: tuple[str, ...] = ()
    frozen: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True)
class Peak:
    """Shares of slots in use above which it is peak: of any version, and of all together."""

    of_version: float = 0.9
    of_all: float = 0.85


def refusal(load: Load, peak: Peak) -> str:
    """Why nothing should move now, a sentence; "" when it may."""
    if not load.known:
        return "the board does not answer, so nobody knows the load: try again when it does"
    if load.frozen:
        return f"everything is frozen by {load.frozen}: remove the freeze first"
    if load.rollouts:
        return f"rollout {load.rollouts[0]} is in progress: its evidence would be of two places"
    if load.waiting > 0:
        return f"{load.waiting} requests wait for a slot: try again off peak"
    for version, busy in sorted(load.in_flight.items()):
        slots = load.slots.get(version, 0)
        if busy > 0 and busy > peak.of_version * slots:
            return (
                f"{version} has {busy:g} requests in flight and {slots} slots, above "
                f"{peak.of_version:.0%}: try again off peak"
            )
    busy, slots = sum(load.in_flight.values()), sum(load.slots.values())
    if busy > peak.of_all * slots:
        return (
            f"{busy:g} requests are in flight and there are {slots} slots, above {peak.of_all:.0%}"
        )
    return ""
