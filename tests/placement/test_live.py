"""The inventory of a live cluster, from records as Ray 2.60 gives them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.live import Difference, differences, groups_of, node_of, places_of
from placement.problem import Place
from placement.ray_state import RayNode
from placement.resources import devices_of, needed, size_of

DEVICE = Place("d0", "l4", "box-0", "a", (24_000, 20), 500, 1)
MACHINE = Place("box-1", "h100", "box-1", "b", (2, 0), 4000, 2)
PLAIN = Place("cpu-0", "cpu", "cpu-0", "a", (16_000, 800), 100, 0)
SPEC = (DEVICE, MACHINE, PLAIN)
# As `ray start` is told them.
OFFERED: dict[str, dict[str, float]] = {
    "d0": {"GPU": 1, "gpu_mem": 24, "gpu_comp": 100},
    "box-1": {"GPU": 2},
    "cpu-0": {"CPU": 8, "memory": 16_000_000_000},
}


def node(place: Place, **changes: Any) -> RayNode:
    resources = {"CPU": 8.0, "object_store_memory": 1e8} | OFFERED[place.name]
    return RayNode(f"n-{place.name}", place.name, True, resources | changes)


def found(*nodes: RayNode) -> list[tuple[str, str]]:
    return [(one.kind, one.place) for one in differences(SPEC, nodes)]


def test_a_cluster_as_the_spec_says_has_no_difference_and_its_places() -> None:
    nodes = [node(place) for place in SPEC]
    assert found(*nodes) == []
    assert {place.name: place for place in places_of(nodes, SPEC)} == {p.name: p for p in SPEC}


def test_a_place_without_an_alive_node_is_missing() -> None:
    gone = RayNode("n-d0", "d0", False, {})
    assert found(gone, node(MACHINE), node(PLAIN)) == [("missing", "d0")]


def test_a_place_that_the_spec_has_not_is_unknown_and_has_what_its_labels_say() -> None:
    labels = {"ray.io/availability-zone": "c", "modelyard/host": "box-9"}
    other = RayNode(
        "n", "d9", True, {"GPU": 1.0, "gpu_mem": 48.0, "gpu_comp": 100.0}, {}, "", labels
    )
    nodes = [*map(node, SPEC), other]
    assert found(*nodes) == [("unknown", "d9")]
    (place,) = [one for one in places_of(nodes, SPEC) if one.name == "d9"]
    assert place == Place("d9", "", "box-9", "c", (48_000, 20), 0, 1)


def test_a_place_with_less_than_the_spec_says_is_told_with_both() -> None:
    (one,) = differences(SPEC, [node(DEVICE, gpu_mem=20.0), node(MACHINE), node(PLAIN)])
    assert one == Difference(
        "smaller",
        "d0",
        "d0: offers 20 GB and 100 % of a device, and the spec says 24 GB and 100 % of a device",
    )
    assert found(node(DEVICE), node(MACHINE, GPU=1.0), node(PLAIN)) == [("smaller", "box-1")]
    assert found(node(DEVICE), node(MACHINE), node(PLAIN, CPU=4.0)) == [("smaller", "cpu-0")]


def test_one_label_on_two_nodes_is_told() -> None:
    nodes = [*map(node, SPEC), RayNode("other", "d0", True, OFFERED["d0"])]
    assert found(*nodes) == [("twice", "d0")]


def test_a_node_and_its_free_part_come_from_rays_records() -> None:
    record: dict[str, Any] = {
        "NodeID": "n1",
        "Alive": True,
        "NodeManagerHostname": "vm",
        "Resources": {"CPU": 4.0},
        "Labels": {"modelyard/place": "d0", "ray.io/node-id": "n1"},
    }
    assert node_of(record, {"n1": {"CPU": 3.0}}) == RayNode(
        "n1", "d0", True, {"CPU": 4.0}, {"CPU": 3.0}, "vm", record["Labels"]
    )
    dead = node_of({"NodeID": "n2", "Alive": False, "Resources": {}}, {})
    assert (dead.place, dead.alive, dead.free) == ("", False, {})


def group_record(name: str, state: str, node_id: str) -> dict[str, Any]:
    return {
        "name": name,
        "state": state,
        "bundles": {0: {"CPU": 1.0}},
        "bundles_to_node_id": {0: node_id},
    }


def test_groups_are_those_of_serves_replicas() -> None:
    table = {
        "g2": group_record("SERVE_REPLICA::gen@1.0.0--b#Generator#r2", "PENDING", ""),
        "g1": group_record("SERVE_REPLICA::gen@1.0.0#Generator#r1", "CREATED", "n1"),
        "g3": group_record("SERVE_REPLICA::gen@1.0.0#Generator#r0", "REMOVED", "n1"),
        "g4": group_record("of-a-job", "CREATED", "n1"),
    }
    one, other = groups_of(table)
    assert (one.id, one.app, one.replica, one.node, one.waits) == (
        "g1",
        "gen@1.0.0",
        "r1",
        "n1",
        False,
    )
    assert (other.id, other.app, other.waits, other.node) == ("g2", "gen@1.0.0--b", True, "")


@pytest.mark.parametrize("place", SPEC)
def test_what_a_node_offers_is_the_size_of_its_place(place: Place) -> None:
    assert size_of({"CPU": 8.0} | OFFERED[place.name]) == (place.size, place.devices)


@given(st.integers(1, 24_000), st.integers(1, 20))
def test_a_share_of_a_device_is_exact_and_sees_that_device(megabytes: int, twentieths: int) -> None:
    bundle = needed(DEVICE, (megabytes, twentieths), 1.0)
    assert abs(bundle["gpu_mem"] * 1000 - megabytes) < 1e-6
    assert round(bundle["GPU"] * 20) == twentieths
    assert bundle["gpu_comp"] == twentieths * 5
    assert devices_of(bundle) == 1
    assert devices_of(needed(MACHINE, (2, 0), 1.0)) == 2
    assert devices_of(needed(PLAIN, (1000, 50), 0.0)) == 0
