"""The Ray nodes that `modelyard up` started beside the head, for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from cluster.node_processes import StartedNode
from cluster.running import Running


def node_lines(running: Running) -> Iterator[str]:
    """A line each; none on a platform of one node."""
    if running.nodes:
        yield f"{'node':<32} {'raylet':<14} logs of its replicas"
    for node in running.nodes:
        yield f"{node.place:<32} {_raylet(node):<14} {node.folder}/session_latest/logs/serve"


def node_record(running: Running) -> dict[str, Any]:
    """The same for `-o json`."""
    nodes = [asdict(node) | {"alive": node.alive} for node in running.nodes]
    return {"nodes": nodes} if nodes else {}


def _raylet(node: StartedNode) -> str:
    return f"pid {node.raylet}" if node.alive else "lost"
