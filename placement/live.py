"""The inventory of a live cluster: what its Ray nodes offer, and how that differs from a spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from placement.problem import Place, Vector
from placement.ray_state import Group, RayNode
from placement.resources import LABEL, is_shared, size_of

POOL: Final = "modelyard/pool"
HOST: Final = "modelyard/host"
ZONE: Final = "ray.io/availability-zone"

_OF_SERVE: Final = "SERVE_REPLICA::"
_GONE: Final = "REMOVED"
_THERE: Final = "CREATED"


@dataclass(frozen=True, slots=True)
class Difference:
    """Between a spec's places and the cluster's: in words, and which place."""

    kind: Literal["missing", "unknown", "smaller", "twice"]
    place: str
    words: str


def read_nodes() -> tuple[RayNode, ...]:
    """Every node that Ray has heard of. Needs a driver's or an actor's connection; blocks."""
    import ray
    from ray._private.state import available_resources_per_node

    # Nowhere public: `ray.available_resources` adds all nodes up.
    free: Mapping[str, Mapping[str, float]] = available_resources_per_node()  # type: ignore[no-untyped-call]
    return tuple(node_of(record, free) for record in ray.nodes())  # type: ignore[no-untyped-call]


def read_groups() -> tuple[Group, ...]:
    """The placement groups of Serve's replicas. Needs a connection; blocks."""
    from ray.util.placement_group import placement_group_table

    return groups_of(placement_group_table())


def node_of(record: Mapping[str, Any], free: Mapping[str, Mapping[str, float]]) -> RayNode:
    labels = dict(record.get("Labels") or {})
    return RayNode(
        id=record["NodeID"],
        place=labels.get(LABEL, ""),
        alive=record["Alive"],
        total=dict(record.get("Resources") or {}),
        free=dict(free.get(record["NodeID"], {})),
        host=labels.get(HOST) or record.get("NodeManagerHostname") or "",
        labels=labels,
    )


def groups_of(table: Mapping[str, Mapping[str, Any]]) -> tuple[Group, ...]:
    """From `placement_group_table()`. Serve names a group after its replica's actor."""
    found = []
    for group_id, record in table.items():
        parts = record["name"].removeprefix(_OF_SERVE).split("#")
        if not record["name"].startswith(_OF_SERVE) or len(parts) != 3 or record["state"] == _GONE:
            continue
        waits = record["state"] != _THERE
        found.append(
            Group(
                id=group_id,
                app=parts[0],
                replica=parts[2],
                waits=waits,
                bundle=dict(record["bundles"].get(0, {})),
                node="" if waits else record["bundles_to_node_id"].get(0, ""),
            )
        )
    return tuple(sorted(found, key=lambda group: (group.app, group.replica)))


def places_of(nodes: Sequence[RayNode], known: Sequence[Place] = ()) -> tuple[Place, ...]:
    """Alive nodes with a place's label, by name. known: a spec's places, for what Ray does not
    have: the price, and pool, host and zone where no label says them."""
    by_name = {place.name: place for place in known}
    found = [
        _place(node, by_name.get(node.place))
        for node in sorted(nodes, key=lambda node: node.place)
        if node.alive and node.place
    ]
    return tuple({place.name: place for place in found}.values())


def differences(known: Sequence[Place], nodes: Sequence[RayNode]) -> Iterator[Difference]:
    """What a plan for `known` would get wrong on this cluster."""
    alive: dict[str, list[RayNode]] = {}
    for node in nodes:
        if node.alive and node.place:
            alive.setdefault(node.place, []).append(node)
    names = {place.name for place in known}
    for place in known:
        there = alive.get(place.name, [])
        if not there:
            yield Difference("missing", place.name, f"{place.name}: no alive node has its label")
        for node in there:
            size, devices = size_of(node.total)
            if _is_smaller(size, place.size) or devices < place.devices:
                yield Difference(
                    "smaller",
                    place.name,
                    f"{place.name}: offers {_words(place, size)}, and the spec says "
                    f"{_words(place, place.size)}",
                )
    for name, there in sorted(alive.items()):
        if len(there) > 1:
            words = f"{name}: {len(there)} alive nodes have this label, and Ray takes either"
            yield Difference("twice", name, words)
        if name not in names:
            yield Difference("unknown", name, f"{name}: no machine of the spec has this name")


def _place(node: RayNode, known: Place | None) -> Place:
    size, devices = size_of(node.total)
    labels = node.labels
    return Place(
        name=node.place,
        pool=labels.get(POOL) or (known.pool if known else ""),
        host=labels.get(HOST) or (known.host if known else node.host),
        zone=labels.get(ZONE) or (known.zone if known else ""),
        size=size,
        price=known.price if known else 0,
        devices=devices,
    )


def _is_smaller(one: Vector, other: Vector) -> bool:
    return one[0] < other[0] or one[1] < other[1]


def _words(place: Place, size: Vector) -> str:
    if is_shared(place):
        return f"{size[0] / 1000:g} GB and {size[1] * 5} % of a device"
    if place.devices:
        return f"{size[0]} devices"
    return f"{size[0] / 1000:g} GB and {size[1] / 100:g} CPUs"
