"""The placement of a running platform: as planned or not, by Serve's details and Ray's state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from modelyard.config.model_args import StartBudgets
from modelyard.control.reading import Reading
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport
from modelyard.lifecycle.silence import ALIVE_S, is_there
from placement.live import read_groups, read_nodes
from placement.parse import bundles_of, cells_of, models_of
from placement.pending import Pending, pending
from placement.plan import Cell
from placement.ray_state import Group, RayNode
from placement.verify import Mismatch, compare

_STARTING: Final = "STARTING"
_DELETING: Final = "DELETING"


@dataclass(frozen=True, slots=True)
class Placement:
    """planned, used: places that the config names, and those of them with a replica."""

    mismatches: tuple[Mismatch, ...]
    pending: tuple[Pending, ...]
    planned: int
    used: int

    @property
    def fine(self) -> bool:
        return not self.mismatches and not self.pending


def read_placement(
    applications: Mapping[str, Any], reading: Reading, now_s: float
) -> Placement | None:
    """None where no app has a place. applications: of Serve's details. now_s: Unix time.

    Needs a driver's or an actor's connection to Ray; blocks. Raises ConfigError for places that no
    plan of ours has.
    """
    config = deployed_config(applications)
    if not cells_of(config):
        return None
    return placement_of(applications, reading, read_groups(), read_nodes(), now_s)


def placement_of(
    applications: Mapping[str, Any],
    reading: Reading,
    groups: Sequence[Group],
    nodes: Sequence[RayNode],
    now_s: float,
) -> Placement:
    config = deployed_config(applications)
    cells = cells_of(config)
    leaving = {name for name, app in applications.items() if _text(app["status"]) == _DELETING}
    groups = [group for group in groups if group.app not in leaving]
    # An app that is gone outlives itself on the board for a moment: its replicas' last posts.
    reports = [
        post.report
        for post in reading.posts
        if _holds(post) and post.report.app in applications and post.report.app not in leaving
    ]
    placed = {cell.app for cell in cells}
    mismatches = compare(
        cells,
        groups,
        reports,
        nodes=nodes,
        bundles=bundles_of(config),
        others=models_of(config) - placed,
    )
    waits = pending(cells, groups, nodes, _waited_s(applications, now_s), _budgets_s(config))
    named = {place for cell in cells for place in cell.places}
    return Placement(mismatches, waits, len(named), len(named & _used(cells, reports)))


def deployed_config(applications: Mapping[str, Any]) -> dict[str, Any]:
    """What runs as one Serve config."""
    configs = [app.get("deployed_app_config") for app in applications.values()]
    return {
        "applications": [
            # The controller answers with its own record, its REST with plain data.
            one if isinstance(one, Mapping) else one.model_dump(exclude_unset=True)
            for one in configs
            if one is not None
        ]
    }


def _holds(post: Post) -> bool:
    """Whether its process has its place still; that of one that failed goes at once."""
    phase = post.report.phase
    return is_there(phase, post.age_s) and (phase is not Phase.FAILED or post.age_s < ALIVE_S)


def _used(cells: Sequence[Cell], reports: Sequence[ReplicaReport]) -> set[str]:
    placed = {cell.app for cell in cells}
    return {report.place for report in reports if report.app in placed}


def _waited_s(applications: Mapping[str, Any], now_s: float) -> dict[str, float]:
    return {
        replica["replica_id"]: max(0.0, now_s - replica.get("start_time_s", now_s))
        for replica in _replicas(applications)
        if _text(replica["state"]) == _STARTING
    }


def _text(state: Any) -> str:
    """The controller answers with enums, its REST with their values."""
    return str(getattr(state, "value", state))


def _replicas(applications: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for app in applications.values():
        for deployment in app["deployments"].values():
            yield from (one for one in deployment["replicas"] if "replica_id" in one)


def _budgets_s(config: Mapping[str, Any]) -> dict[str, float]:
    return {app["name"]: _budget_s(app.get("args") or {}) for app in config["applications"]}


def _budget_s(args: Mapping[str, Any]) -> float:
    try:
        return StartBudgets.model_validate(args.get("start_budgets") or {}).scheduled_s
    except ValidationError:  # the app's own start says what is wrong with them
        return StartBudgets().scheduled_s
