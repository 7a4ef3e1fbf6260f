"""The machines of a fleet spec as Ray nodes of this one, with devices that it has not.

Ray counts what `ray start` declares and gives it out; that nothing stands behind it, it never asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Final

from modelyard.config.fleet import FleetSpec, NodePool
from modelyard.config.fleet_checked import cpus_per_place
from modelyard.config.fleet_names import machine_names, place_names
from modelyard.contract.errors import ConfigError

PLACE: Final = "modelyard/place"
HOST: Final = "modelyard/host"
POOL: Final = "modelyard/pool"
ZONE: Final = "ray.io/availability-zone"
REGION: Final = "ray.io/availability-region"
ACCELERATOR: Final = "ray.io/accelerator-type"
# Of every head that `modelyard up` starts: a label_selector for ingresses and control.
HEAD_LABELS: Final = {"modelyard/node": "head"}
# Of the head, beyond what models may use: two ingresses, control, and what is redeployed of them.
FRONT_CPUS: Final = 2
# ~2 GB of a head, and ~0.2 GB of each node before its first replica.
MOST_NODES: Final = 24


@dataclass(frozen=True, slots=True)
class EmulatedNode:
    """What one Ray node declares.

    place: its label, "" without one. memory_bytes: for models that run on the CPU; None leaves it
    to Ray. labels: Ray's own (ray.io/...) too.
    """

    place: str
    cpus: int
    gpus: int = 0
    memory_bytes: int | None = None
    resources: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def options(self) -> list[str]:
        """Of `ray start`."""
        made = [f"--num-cpus={self.cpus}", f"--num-gpus={self.gpus}"]
        if self.memory_bytes is not None:
            made.append(f"--memory={self.memory_bytes}")
        if self.resources:
            made.append(f"--resources={json.dumps(dict(self.resources))}")
        return made

    def environment(self) -> dict[str, str]:
        """Of `ray start`, and so of its replicas."""
        return {
            # `--labels` refuses those of ray.io; this takes all.
            "RAY_OVERRIDE_LABELS": json.dumps(dict(self.labels)),
            "MODELYARD_EMULATED_GPUS": "1",
        }


@dataclass(frozen=True, slots=True)
class EmulatedFleet:
    """The head, and the nodes that join it."""

    head: EmulatedNode
    nodes: tuple[EmulatedNode, ...]


def emulated_fleet(spec: FleetSpec) -> EmulatedFleet:
    """A Ray node for each machine, or for each of its devices where they are shared.

    The first machine without accelerators is the head; without one, the head is no place of the
    fleet. Raises ConfigError for more nodes than this machine bears.
    """
    made = [node for name, pool in spec.node_pools.items() for node in _nodes(name, pool)]
    if len(made) > MOST_NODES:
        raise ConfigError(
            f"the fleet is {len(made)} Ray nodes, one for each machine or shared device, and each "
            f"takes memory of this machine: emulate a fleet of at most {MOST_NODES}"
        )
    head = next((node for node in made if not node.gpus), EmulatedNode("", 0))
    # The planner counts ingresses and control nowhere.
    front = replace(head, cpus=head.cpus + FRONT_CPUS, labels={**head.labels, **HEAD_LABELS})
    return EmulatedFleet(front, tuple(node for node in made if node is not head))


def _nodes(name: str, pool: NodePool) -> Iterator[EmulatedNode]:
    each = pool.devices if pool.sharing == "shared" else 1
    hosts = (machine for machine in machine_names(name, pool) for _ in range(each))
    for place, host in zip(place_names(name, pool), hosts, strict=True):
        labels = {PLACE: place, HOST: host, POOL: name, ZONE: pool.zone}
        if pool.region is not None:
            labels[REGION] = pool.region
        if pool.accelerator is not None:
            labels[ACCELERATOR] = pool.accelerator
        yield replace(_offer(pool), place=place, labels=labels)


def _offer(pool: NodePool) -> EmulatedNode:
    """Without a name. CPUs are rounded up: `ray start` takes whole ones."""
    if pool.accelerator is None:
        return EmulatedNode("", ceil(pool.cpus), memory_bytes=int(pool.memory_gb * 1e9))
    if pool.sharing == "whole":
        return EmulatedNode("", ceil(pool.cpus), gpus=pool.devices)
    return EmulatedNode(
        "",
        ceil(cpus_per_place(pool, 1)),
        gpus=1,
        # What several replicas of one device share: GB, and percent of its compute.
        resources={"gpu_mem": pool.memory_gb, "gpu_comp": 100},
    )
