"""Rules about the machines of a fleet spec, and about which of them a model may use."""

from __future__ import annotations

from collections.abc import Iterator

from modelyard.config.explain import did_you_mean
from modelyard.config.faults import Fault
from modelyard.config.fleet_checked import FleetChecked, allowed_pools
from modelyard.config.fleet_names import longest_place_name, machine_names, place_names

_LONGEST_LABEL = 63


def machine_names_differ(checked: FleetChecked) -> Iterator[Fault]:
    """A place is told by its name alone, whichever pool it is of."""
    owner: dict[str, str] = {}
    for name, pool in checked.spec.node_pools.items():
        names = {*machine_names(name, pool), *place_names(name, pool)}
        taken = sorted(one for one in names if one in owner)
        if taken:
            yield checked.fault(
                ("node_pools", name),
                f"its machine or device {taken[0]} has the name of one in {owner[taken[0]]}: give "
                "the machines other names",
            )
        owner |= dict.fromkeys(names, name)


def machine_names_are_labels(checked: FleetChecked) -> Iterator[Fault]:
    for name, pool in checked.spec.node_pools.items():
        longest = longest_place_name(name, pool)
        if len(longest) > _LONGEST_LABEL:
            yield checked.fault(
                ("node_pools", name, "names"),
                f"the device {longest} has more than the {_LONGEST_LABEL} characters of a Ray "
                "label: give the machine a shorter name",
            )


def regions_agree(checked: FleetChecked) -> Iterator[Fault]:
    for name, pool in checked.spec.node_pools.items():
        if pool.region not in (None, checked.spec.region):
            yield checked.fault(
                ("node_pools", name, "region"),
                f"the cluster is in {checked.spec.region} (region), and tenants rely on it: give "
                "machines of another region a fleet spec of their own",
            )


def pools_exist(checked: FleetChecked) -> Iterator[Fault]:
    pools = checked.spec.node_pools
    for path, _, model in checked.models():
        for index, name in enumerate(model.pool):
            if name not in pools:
                near = did_you_mean(name, pools)
                yield checked.fault(
                    (*path, "pool", index),
                    f"no such pool in node_pools: {near or 'add it, or name one of them'}",
                )


def places_are_left(checked: FleetChecked) -> Iterator[Fault]:
    """What `where` names is in the model's pools."""
    for path, _, model in checked.models():
        pools = [
            checked.spec.node_pools[one] for one in model.pool if one in checked.spec.node_pools
        ]
        zones = {pool.zone for pool in pools}
        accelerators = {pool.accelerator for pool in pools if pool.accelerator is not None}
        for key, named, there in (
            ("zones", model.where.zones, zones),
            ("accelerators", model.where.accelerators, accelerators),
        ):
            for index, one in enumerate(named or ()):
                if pools and one not in there:
                    known = ", ".join(sorted(there)) or "none"
                    yield checked.fault(
                        (*path, "where", key, index),
                        f"none of the model's pools has it: write one of theirs ({known}), or add "
                        "a pool",
                    )
        if (
            pools
            and not allowed_pools(checked.spec, model)
            and zones & {*(model.where.zones or ())}
        ):
            yield checked.fault(
                (*path, "where"),
                "no pool of the model has both such a zone and such an accelerator: allow more",
            )


def pools_are_alike(checked: FleetChecked) -> Iterator[Fault]:
    """All cells of a version are started alike, so their places are of one sort."""
    for path, _, model in checked.models():
        pools = allowed_pools(checked.spec, model)
        sorts = {
            (pool.accelerator is None, pool.sharing, pool.sharing == "shared" and pool.memory_gb)
            for pool in pools.values()
        }
        if len(sorts) > 1:
            yield checked.fault(
                (*path, "pool"),
                "its pools differ in having accelerators, in sharing, or in a shared device's "
                "memory_gb, and all replicas of a version are started alike: name pools of one "
                "sort, or make it two models",
            )
