"""`modelyard check --live` of a fleet spec: whether the cluster has the places in it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cluster.head import serve_api_answers
from cluster.local import LocalCluster
from cluster.observe import connected
from cluster.running import Running
from modelyard.config.fleet_file import read_fleet
from modelyard.config.settings import Settings
from modelyard.contract.errors import ConfigError
from placement.inventory import places_of
from placement.live import Difference, differences, read_nodes


@dataclass(frozen=True, slots=True)
class LiveInventory:
    """places: of the spec. differences: from the cluster's nodes, which may have more."""

    places: int
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        return all(one.kind == "unknown" for one in self.differences)

    def lines(self) -> list[str]:
        if not self.differences:
            return [f"all {self.places} places are there"]
        return [f"{one.kind:<9} {one.words}" for one in self.differences]

    def as_record(self) -> dict[str, Any]:
        found = [asdict(one) for one in self.differences]
        return {"ok": self.ok, "places": self.places, "differences": found}


def live_inventory(path: Path) -> LiveInventory:
    """Of a spec that `check` has passed. Raises ConfigError or Unreachable: nothing runs here."""
    known = places_of(read_fleet(path).spec)
    with connected(running_here()):
        found = tuple(differences(known, read_nodes()))
    return LiveInventory(len(known), found)


def running_here() -> Running:
    """Raises ConfigError."""
    running = LocalCluster(Settings.from_environment()).running()
    if running is None or not serve_api_answers(running):
        raise ConfigError(
            "--live compares with the platform of this machine, and none answers: start it with "
            "`modelyard up`, or leave --live out"
        )
    return running
