"""What machines and places of a node pool are called."""

from __future__ import annotations

from modelyard.config.fleet import NodePool


def machine_names(name: str, pool: NodePool) -> tuple[str, ...]:
    """In order: the names given, else POOL-0, POOL-1 and so on."""
    return pool.names or tuple(f"{name}-{index}" for index in range(pool.nodes))


def place_names(name: str, pool: NodePool) -> tuple[str, ...]:
    """Of its Ray nodes: a machine's own, or of each shared device MACHINE-d0, MACHINE-d1."""
    machines = machine_names(name, pool)
    if pool.sharing == "whole":
        return machines
    return tuple(f"{one}-d{device}" for one in machines for device in range(pool.devices))


def longest_place_name(name: str, pool: NodePool) -> str:
    return max(place_names(name, pool), key=len, default="")
