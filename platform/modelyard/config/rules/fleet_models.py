"""Rules about a fleet spec's models: each replica fits somewhere, and its keys agree."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.faults import Fault
from modelyard.config.fleet import FleetModel, NodePool, Spread
from modelyard.config.fleet_checked import (
    FleetChecked,
    allowed_pools,
    cpus_per_place,
    exact,
    memory_per_place,
)
from modelyard.contract.operations import Kind


def memory_is_known(checked: FleetChecked) -> Iterator[Fault]:
    for version, why in checked.unknown.items():
        name, _, number = version.rpartition("@")
        yield checked.fault(("models", name, "versions", number, "artifact"), why)


def tensor_parallel_fits_a_machine(checked: FleetChecked) -> Iterator[Fault]:
    """Its devices are whole and of one machine; nothing else is fast enough between them."""
    for path, _, model in checked.models():
        size = model.tensor_parallel_size
        pools = allowed_pools(checked.spec, model)
        reasons = [_why_not_parallel(size, name, pool) for name, pool in pools.items()]
        if size > 1 and reasons and all(reasons):  # a pool that does not fit is not used
            yield checked.fault((*path, "tensor_parallel_size"), reasons[0])


def _why_not_parallel(size: int, name: str, pool: NodePool) -> str:
    if pool.accelerator is None or pool.sharing != "whole":
        return (
            f"takes whole devices, and pool {name} has none to give: name a pool with an "
            "accelerator and `sharing: whole`"
        )
    if size > pool.devices:
        return (
            f"a machine of pool {name} has {pool.devices} devices, and a replica never leaves its "
            "machine: lower it, or name a pool of larger machines"
        )
    return ""


def only_generators_have_an_engine(checked: FleetChecked) -> Iterator[Fault]:
    for path, _, model in checked.models():
        if model.kind is Kind.GENERATOR:
            continue
        if model.engine is not None:
            yield checked.fault(
                (*path, "engine"),
                "only a generator has an engine: remove it, tunables are in serve.user_config",
            )
        if model.tensor_parallel_size > 1:
            yield checked.fault(
                (*path, "tensor_parallel_size"),
                f"a replica of this kind ({model.kind}) runs on one device: remove it",
            )


def the_planner_divides_devices(checked: FleetChecked) -> Iterator[Fault]:
    """What follows from the placement is written by the planner alone."""
    for path, _, model in checked.models():
        engine = model.engine
        if engine is None:
            continue
        if engine.tensor_parallel_size is not None:
            yield checked.fault(
                (*path, "engine", "tensor_parallel_size"),
                "the planner must know it: set the model's own tensor_parallel_size instead",
            )
        shared = any(one.sharing == "shared" for one in allowed_pools(checked.spec, model).values())
        if engine.gpu_memory_utilization is not None and shared:
            yield checked.fault(
                (*path, "engine", "gpu_memory_utilization"),
                "on a shared device the planner sets it to the model's part: remove it, and set "
                "memory_gb",
            )


def a_replica_fits_an_empty_place(checked: FleetChecked) -> Iterator[Fault]:
    """In at least one of its pools; a pool where it does not fit is not used."""
    for path, name, model in checked.models():
        size = model.tensor_parallel_size
        pools = allowed_pools(checked.spec, model)
        needs = {v: checked.memory.get(f"{name}@{v}") for v in model.versions}
        room = max((memory_per_place(pool, size) for pool in pools.values()), default=0)
        for version, need in needs.items():
            if pools and need is not None and need > room:
                at = "memory_gb" if model.memory_gb is not None else "versions"
                more = "" if at == "memory_gb" else f"{version}: "
                yield checked.fault(
                    (*path, at),
                    f"{more}a replica needs {need / 1e9:.2f} GB, and the largest of its pools "
                    f"gives it {room / 1e9:g}: name a pool with more memory"
                    + (", or raise tensor_parallel_size" if _can_spread(model) else ""),
                )
                break
        cpus = max((cpus_per_place(pool, size) for pool in pools.values()), default=exact(0))
        if pools and exact(model.cpus) > cpus:
            yield checked.fault(
                (*path, "cpus"),
                f"a replica gets at most {float(cpus):g} CPUs, its devices' part of the machine's: "
                "lower it, or raise the pool's cpus if the machines have more",
            )


def _can_spread(model: FleetModel) -> bool:
    return model.kind is Kind.GENERATOR


def spread_has_room(checked: FleetChecked) -> Iterator[Fault]:
    """There are as many zones and machines as the replicas must lie in."""
    for path, _, model in checked.models():
        pools = allowed_pools(checked.spec, model).values()
        zones = {pool.zone for pool in pools if pool.nodes > 0}
        nodes = sum(pool.nodes for pool in pools)
        spread: Spread = model.spread
        for key, wanted, there in (
            ("zones", spread.zones, len(zones)),
            ("nodes", spread.nodes, nodes),
        ):
            if pools and wanted > max(1, there):  # without any machine the planner says so
                yield checked.fault(
                    (*path, "spread", key),
                    f"the model's pools have {there} {key}: lower it, or add a pool",
                )


def spread_has_replicas(checked: FleetChecked) -> Iterator[Fault]:
    """A replica is not divided: two zones take two of them."""
    for path, _, model in checked.models():
        spread = model.spread
        parts = max(spread.zones, spread.nodes)
        for version in model.versions:
            scaling = model.scaling_of(version)
            if spread.survive is None and scaling.max_replicas < parts:
                yield checked.fault(
                    (*path, "spread"),
                    f"{parts} parts of at most {scaling.max_replicas} replicas ({version}): raise "
                    "max_replicas, or spread less",
                )
                break


def swappable_is_one_replica(checked: FleetChecked) -> Iterator[Fault]:
    for path, _, model in checked.models():
        if not model.swappable:
            continue
        if model.spread != Spread():
            yield checked.fault(
                (*path, "spread"), "a swappable model is at one place, when it is loaded: remove it"
            )
        for version in model.versions:
            if model.scaling_of(version).max_replicas != 1:
                yield checked.fault(
                    (*path, *_scaling_at(model, version), "max_replicas"),
                    "a swappable model has one replica, when it is loaded: set 1, or give it a "
                    "place of its own (`swappable: false`)",
                )
                break
            if model.scaling_of(version).downscale_to_zero_delay_s is not None:
                yield checked.fault(
                    (*path, *_scaling_at(model, version), "downscale_to_zero_delay_s"),
                    "control says when a swappable model goes, and then its memory must be free at "
                    "once: remove it",
                )
                break


def _scaling_at(model: FleetModel, version: str) -> tuple[str, ...]:
    own = model.versions[version].scaling is not None
    return ("versions", version, "scaling") if own else ("scaling",)


def zero_replicas_are_meant(checked: FleetChecked) -> Iterator[Fault]:
    for path, _, model in checked.models():
        for version in model.versions:
            scaling = model.scaling_of(version)
            if scaling.min_replicas or scaling.downscale_to_zero_delay_s or model.swappable:
                continue
            yield checked.fault(
                (*path, *_scaling_at(model, version), "min_replicas"),
                "with none running the first request waits for a whole start: set 1, make it "
                "swappable, or set downscale_to_zero_delay_s if that is meant",
            )


def compute_fits_a_device(checked: FleetChecked) -> Iterator[Fault]:
    """Shares are of a device that is shared; a machine's whole devices are all a replica's."""
    for path, _, model in checked.models():
        pools = allowed_pools(checked.spec, model).values()
        given = checked.given((*path, "compute_percent"))
        if given is not None and pools and all(pool.sharing == "whole" for pool in pools):
            yield checked.fault(
                (*path, "compute_percent"),
                "none of its pools shares devices, and nothing would keep to it: remove it",
            )
