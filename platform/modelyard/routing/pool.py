"""A pool: where the replicas of one version are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
    """One Serve app that serves a version, and the deployment in it that answers."""

    app: str
    deployment: str


class CellState(NamedTuple):
    """A cell as last posted: ready replicas, their requests, and the age of the youngest post.

    slots: requests that they take at once, all together.
    """

    ready: int
    ongoing: int
    slots: int
    age_s: float
    replicas: tuple[str, ...]  # Ray's ids of the ready ones, by which the router hashes them


@dataclass(frozen=True, slots=True)
class Pool:
    """A version's cells with a ready replica, in name order: one, until placement makes more."""

    version: str
    cells: tuple[Cell, ...]

    @property
    def is_ready(self) -> bool:
        return bool(self.cells)
