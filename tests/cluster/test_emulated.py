"""A fleet spec's machines, as what `ray start` of each is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cluster.emulated import FRONT_CPUS, MOST_NODES, EmulatedFleet, emulated_fleet
from modelyard.config.fleet import FleetSpec
from modelyard.contract.errors import ConfigError
from placement.inventory import places_of
from placement.live import differences, node_of

WHOLE = {"nodes": 2, "accelerator": "H100", "devices": 2, "memory_gb": 80, "zone": "a"}
SHARED = {"nodes": 1, "accelerator": "L4", "devices": 2, "memory_gb": 24, "sharing": "shared"}
CPU = {"nodes": 2, "memory_gb": 16, "cpus": 4, "zone": "b"}


def spec_of(**pools: dict[str, Any]) -> FleetSpec:
    model = {
        "kind": "embedder",
        "pool": [next(iter(pools))],
        "memory_gb": 1,
        "serve": {"max_ongoing_requests": 8},
        "versions": {"1.0.0": {"artifact": "file://~/.modelyard/models/tiny/1.0.0"}},
    }
    return FleetSpec.model_validate(
        {
            "schema": "modelyard/fleet/v1",
            "http_options": {"host": "127.0.0.1", "port": 8000},
            "control": {"state_path": "~/.modelyard/control.sqlite"},
            "routes": {"tiny": {"stable": "tiny@1.0.0"}},
            "tenants": {"demo": {"models": ["*"]}},
            "keys": [],
            "node_pools": pools,
            "models": {"tiny": model},
        }
    )


def fleet_of(**pools: dict[str, Any]) -> EmulatedFleet:
    return emulated_fleet(spec_of(**pools))


def test_a_machine_of_whole_devices_is_one_node_and_a_shared_device_is_one() -> None:
    fleet = fleet_of(whole=WHOLE, shared=SHARED)
    assert [(node.place, node.gpus) for node in fleet.nodes] == [
        ("whole-0", 2),
        ("whole-1", 2),
        ("shared-0-d0", 1),
        ("shared-0-d1", 1),
    ]


def test_a_shared_device_declares_its_memory_and_its_compute() -> None:
    [first, _] = fleet_of(shared=SHARED).nodes
    [resources] = [one for one in first.options() if one.startswith("--resources=")]
    assert json.loads(resources.removeprefix("--resources=")) == {"gpu_mem": 24, "gpu_comp": 100}
    assert "--num-gpus=1" in first.options()
    assert "--num-cpus=4" in first.options()  # its part of the machine's 8


def test_a_node_is_labelled_with_its_place_machine_pool_and_zone() -> None:
    [first, _] = fleet_of(shared=SHARED | {"zone": "b", "region": "eu"}).nodes
    assert json.loads(first.environment()["RAY_OVERRIDE_LABELS"]) == {
        "modelyard/place": "shared-0-d0",
        "modelyard/host": "shared-0",
        "modelyard/pool": "shared",
        "ray.io/availability-zone": "b",
        "ray.io/availability-region": "eu",
        "ray.io/accelerator-type": "L4",
    }


def test_every_node_tells_its_replicas_that_the_devices_are_not_there() -> None:
    fleet = fleet_of(shared=SHARED, cpu=CPU)
    for node in (fleet.head, *fleet.nodes):
        assert node.environment()["MODELYARD_EMULATED_GPUS"] == "1"


def test_the_first_machine_without_accelerators_is_the_head_with_room_for_the_ingresses() -> None:
    fleet = fleet_of(whole=WHOLE, cpu=CPU)
    assert fleet.head.place == "cpu-0"
    assert fleet.head.cpus == 4 + FRONT_CPUS
    assert fleet.head.labels["modelyard/node"] == "head"
    assert all("modelyard/node" not in node.labels for node in fleet.nodes)
    assert fleet.head.memory_bytes == 16 * 10**9
    assert [node.place for node in fleet.nodes] == ["whole-0", "whole-1", "cpu-1"]


def test_the_head_of_a_fleet_of_accelerators_is_no_place_of_it() -> None:
    head = fleet_of(whole=WHOLE).head
    assert head.place == ""
    assert head.labels == {"modelyard/node": "head"}
    assert head.options() == [f"--num-cpus={FRONT_CPUS}", "--num-gpus=0"]


def test_a_fleet_that_this_machine_does_not_bear_is_refused() -> None:
    with pytest.raises(ConfigError, match=rf"is {MOST_NODES + 1} Ray nodes.* at most {MOST_NODES}"):
        fleet_of(whole=WHOLE | {"nodes": MOST_NODES + 1})


def test_the_emulated_nodes_are_the_places_of_the_plan() -> None:
    """What a live cluster's inventory would say of what `ray start` is told."""
    spec = spec_of(whole=WHOLE, shared=SHARED, cpu=CPU)
    fleet = emulated_fleet(spec)
    nodes = [
        node_of(
            {
                "NodeID": node.place,
                "Alive": True,
                "Resources": {"CPU": node.cpus, "GPU": node.gpus, **node.resources}
                | ({"memory": node.memory_bytes} if node.memory_bytes else {}),
                "Labels": json.loads(node.environment()["RAY_OVERRIDE_LABELS"]),
            },
            {},
        )
        for node in (fleet.head, *fleet.nodes)
    ]
    assert list(differences(places_of(spec), nodes)) == []
