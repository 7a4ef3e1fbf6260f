"""The places that a fleet spec's machines make."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.fleet import FleetSpec, NodePool
from modelyard.config.fleet_checked import exact
from modelyard.config.fleet_names import machine_names
from placement.problem import Place, Vector

MB_PER_GB = 1000
COMPUTE_PARTS = 20
MILLIONTHS = 1_000_000


def places_of(spec: FleetSpec, lost: frozenset[str] = frozenset()) -> tuple[Place, ...]:
    """In the order of pools and machines. lost: machines or places that are not there."""
    return tuple(
        place
        for name, pool in spec.node_pools.items()
        for place in _places(name, pool)
        if place.name not in lost and place.host not in lost
    )


def size_of(pool: NodePool) -> Vector:
    """Of one place of a pool while it is empty."""
    if pool.accelerator is None:
        return int(exact(pool.memory_gb) * MB_PER_GB), int(exact(pool.cpus) * 100)
    if pool.sharing == "whole":
        return pool.devices, 0
    return int(exact(pool.memory_gb) * MB_PER_GB), COMPUTE_PARTS


def _places(name: str, pool: NodePool) -> Iterator[Place]:
    price = round(pool.price_per_hour * MILLIONTHS)
    devices = pool.devices if pool.accelerator is not None else 0
    for host in machine_names(name, pool):
        if pool.sharing == "whole":
            yield Place(host, name, host, pool.zone, size_of(pool), price, devices)
            continue
        for device in range(pool.devices):
            # The rest of a division goes to the first ones, so that a machine costs what it costs.
            part = price // devices + (device < price % devices)
            yield Place(f"{host}-d{device}", name, host, pool.zone, size_of(pool), part, 1)
