"""A pool: where the replicas of one version are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
    """One Serve app that serves a version, and the deployment in it that answers."""

    app: str
    deployment: str


@dataclass(frozen=True, slots=True)
class Pool:
    """A version's cells with a ready replica, in name order: one, until placement makes more."""

    version: str
    cells: tuple[Cell, ...]

    @property
    def is_ready(self) -> bool:
        return bool(self.cells)
