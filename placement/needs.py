"""What one replica takes of a place, in the units of its pool."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from modelyard.config.fleet import FleetModel, FleetSpec, NodePool
from modelyard.config.fleet_checked import (
    allowed_pools,
    cpus_per_place,
    exact,
    memory_per_place,
)
from placement.demand import Demand
from placement.inventory import COMPUTE_PARTS, MB_PER_GB, size_of
from placement.problem import Item, Vector

_BYTES_PER_MB = 10**6


def item_of(version: str, model: FleetModel, memory: int, spec: FleetSpec, demand: Demand) -> Item:
    """The replicas of a version that must have a place. memory: bytes of one replica."""
    return Item(
        name=version,
        replicas=demand.replicas,
        needs=needs_of(model, memory, spec),
        per_host=demand.per_host,
        per_zone=demand.per_zone,
        priority=model.priority,
    )


def needs_of(model: FleetModel, memory: int, spec: FleetSpec) -> Mapping[str, Vector]:
    """By each pool that the model may use and where one replica fits an empty place."""
    return {
        name: need_at(model, memory, pool)
        for name, pool in allowed_pools(spec, model).items()
        if _fits(model, memory, pool)
    }


def need_at(model: FleetModel, memory: int, pool: NodePool) -> Vector:
    """Of one replica, rounded up to what the pool gives out.

    On a shared device the CPUs count as compute: a device's part of the machine's CPUs goes with
    the same part of its compute, so that no replica waits for a CPU that another holds.
    """
    # What fits by the byte fits by the MB: a place's size is rounded down.
    megabytes = min(ceil(memory / _BYTES_PER_MB), max(size_of(pool)[0], memory // _BYTES_PER_MB))
    if pool.accelerator is None:
        return rounded_up(megabytes, size_of(pool)[0], None), ceil(exact(model.cpus) * 100)
    if pool.sharing == "whole":
        return model.tensor_parallel_size, 0
    cpus = exact(model.cpus) * COMPUTE_PARTS / cpus_per_place(pool, 1)
    compute = exact(model.compute_percent) * COMPUTE_PARTS / 100
    return rounded_up(megabytes, size_of(pool)[0], pool.slices), ceil(max(cpus, compute))


def rounded_up(megabytes: int, size: int, slices: int | None) -> int:
    """To so many parts of `size`, or to whole GB; never above `size` where it fits."""
    if slices is None:
        whole = ceil(megabytes / MB_PER_GB) * MB_PER_GB
        return min(whole, size) if megabytes <= size else whole
    # Floors of the boundaries, so that `slices` replicas of one part each always fit.
    parts = next(
        n
        for n in range(ceil(megabytes * slices / size), slices + 2)
        if n * size // slices >= megabytes
    )
    return parts * size // slices


def _fits(model: FleetModel, memory: int, pool: NodePool) -> bool:
    size = model.tensor_parallel_size
    if size > 1 and (pool.accelerator is None or pool.sharing != "whole" or size > pool.devices):
        return False
    return memory <= memory_per_place(pool, size) and exact(model.cpus) <= cpus_per_place(
        pool, size
    )
