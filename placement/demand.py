"""How many replicas a version must have places for, and how far apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelyard.config.fleet import Scaling, Spread


@dataclass(frozen=True, slots=True)
class Demand:
    """replicas: at most. least: that run whatever the load. per_host, per_zone: None for any."""

    replicas: int
    least: int
    per_host: int | None = None
    per_zone: int | None = None


def demand_of(scaling: Scaling, spread: Spread) -> Demand:
    """What survives the loss of one zone of z keeps ceil(max / (z - 1)) replicas in each: 15 in all
    for 10 over three zones, 20 over two. Machines likewise."""
    parts = {"zone": spread.zones, "node": spread.nodes, None: 1}[spread.survive]
    replicas, least = scaling.max_replicas, scaling.min_replicas
    if spread.survive is not None:
        replicas = _ceil(replicas, parts - 1) * parts
        least = _ceil(least, parts - 1) * parts
    return Demand(
        replicas,
        least,
        per_host=_ceil(replicas, spread.nodes) if spread.nodes > 1 else None,
        per_zone=_ceil(replicas, spread.zones) if spread.zones > 1 else None,
    )


def after_a_loss(
    demand: Demand, scaling: Scaling, spread: Spread, zones: int, hosts: int
) -> Demand:
    """With only so many zones and machines left: spread over those; the spare replicas of a zone or
    machine that has gone are not asked for, which is what they were spare for."""
    replicas, per_host, per_zone = demand.replicas, demand.per_host, demand.per_zone
    least = demand.least
    if per_zone is not None and 0 < zones < spread.zones:
        if spread.survive == "zone":
            replicas = max(scaling.max_replicas, min(replicas, per_zone * zones))
            least = max(scaling.min_replicas, min(least, _ceil(least, spread.zones) * zones))
        per_zone = max(per_zone, _ceil(replicas, zones))
    if per_host is not None and 0 < hosts < spread.nodes:
        if spread.survive == "node":
            replicas = max(scaling.max_replicas, min(replicas, per_host * hosts))
            least = max(scaling.min_replicas, min(least, _ceil(least, spread.nodes) * hosts))
        per_host = max(per_host, _ceil(replicas, hosts))
    return Demand(replicas, min(least, replicas), per_host, per_zone)


def without_spares(demand: Demand, scaling: Scaling) -> Demand:
    """What callers were promised, no replica of it spare; the caps stay."""
    replicas = min(demand.replicas, scaling.max_replicas)
    return replace(demand, replicas=replicas, least=min(demand.least, replicas))


def _ceil(count: int, parts: int) -> int:
    return -(-count // parts)
