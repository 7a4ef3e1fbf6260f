"""Ray's nodes and placement groups as small records, so that what judges them needs no Ray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RayNode:
    """place: its label `modelyard/place`, "" without one. total, free: its resources; free is
    empty for a node that is gone."""

    id: str
    place: str
    alive: bool
    total: Mapping[str, float]
    free: Mapping[str, float] = field(default_factory=dict)
    host: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Group:
    """The placement group of a replica, which has one bundle.

    app, replica: as Serve's name of the group says. node: the Ray node it is on, "" while it waits.
    """

    id: str
    app: str
    replica: str
    waits: bool
    bundle: Mapping[str, float]
    node: str
