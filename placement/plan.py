"""A plan: the cells of each version, and how good the packing is."""

from __future__ import annotations

from dataclasses import dataclass

from modelyard.config.swap import SwapArea
from placement.problem import Bound, Packing, Problem


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One Serve app: the replicas of a version at one place.

    name: "" for the first of a version, then "b", "c", ... "z", "aa"; a name is never given to
    another place while its cell lives. Several places only where a plan would have more apps than
    Serve's controller bears, and where Ray has no choice: each has room for exactly `each`.
    min_replicas: those that run whatever the load. The order of a version's names is the order in
    which its cells are filled.
    """

    version: str
    name: str
    places: tuple[str, ...]
    each: int
    min_replicas: int

    @property
    def app(self) -> str:
        return f"{self.version}--{self.name}" if self.name else self.version

    @property
    def replicas(self) -> int:
        """At most."""
        return self.each * len(self.places)


@dataclass(frozen=True)
class Plan:
    """Every cell in the order of versions and names.

    problem, packing: with a swap area as one item, named `swap:NAME`; its members' cells are at its
    place. swap_areas: by name.
    """

    problem: Problem
    packing: Packing
    bound: Bound
    cells: tuple[Cell, ...]
    swap_areas: dict[str, SwapArea]
