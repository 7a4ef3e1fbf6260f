"""What an ingress knows of the replicas, from the board's posts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from modelyard.contract.operations import DEPLOYMENT_OF
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.probes import ProbeCounts
from modelyard.lifecycle.report import Description, Post, ReplicaReport
from modelyard.lifecycle.silence import ALIVE_S, is_there
from modelyard.routing.pool import Cell, CellState, Pool

DEFAULT_LOAD_S: Final = 30.0
NOBODY: Final = CellState(0, 0, 0, 0.0, ())


class Fleet:
    """Pools and descriptions by version.

    A pool is one app, or several cells named `name@version--b`. Descriptions are never
    forgotten (a version is immutable), so `GET /v1/models` stays whole while a model restarts.
    """

    def __init__(self) -> None:
        self._pools: dict[str, Pool] = {}
        self._descriptions: dict[str, Description] = {}
        self._load_s: dict[str, float] = {}
        self._ready_replicas: dict[str, int] = {}
        self._states: dict[str, CellState] = {}
        self._probes: dict[str, ProbeCounts] = {}
        self._started: set[str] = set()

    def update(self, posts: Iterable[Post]) -> None:
        """Take one whole reading of the board."""
        cells: dict[str, set[Cell]] = {}
        ready: dict[str, int] = {}
        states: dict[str, CellState] = {}
        there: dict[str, list[ReplicaReport]] = {}
        for post in posts:
            report = post.report
            version = version_of(report.app)
            if _is_counted(post):
                there.setdefault(version, []).append(report)
            if report.description is not None:
                self._descriptions[version] = report.description
            if report.ready and report.description is not None and post.age_s < ALIVE_S:
                cell = Cell(report.app, DEPLOYMENT_OF[report.description.kind])
                cells.setdefault(version, set()).add(cell)
                ready[version] = ready.get(version, 0) + 1
                states[report.app] = _with_replica(states.get(report.app), post)
                self._load_s[version] = sum(seconds for _, seconds in report.phases)
        self._ready_replicas, self._states = ready, states
        self._probes = {version: ProbeCounts.of(reports) for version, reports in there.items()}
        self._started |= {version for version, count in self._probes.items() if count.started}
        self._pools = {
            version: Pool(version, tuple(sorted(found))) for version, found in cells.items()
        }

    def describe(self, version: str) -> Description | None:
        return self._descriptions.get(version)

    def pool(self, version: str) -> Pool:
        """The cells of a version with a ready replica; an empty pool when there is none."""
        return self._pools.get(version) or Pool(version, ())

    def ready_replicas(self, version: str) -> int:
        """As last posted: one that has just died counts until its posts are too old."""
        return self._ready_replicas.get(version, 0)

    def probes(self, version: str) -> ProbeCounts:
        """Its replicas that are there, starting ones too, and how many pass each probe."""
        return self._probes.get(version, ProbeCounts())

    def ever_started(self, version: str) -> bool:
        """Whether a replica of it was ever ready, as far as this process has seen."""
        return version in self._started

    def state(self, app: str) -> CellState:
        """A cell as its ready replicas last posted."""
        return self._states.get(app, NOBODY)

    def load_s(self, version: str) -> float:
        """Seconds from start to ready, as last measured: when to try again a model not loaded."""
        return self._load_s.get(version, DEFAULT_LOAD_S)


def _is_counted(post: Post) -> bool:
    """By the probes. What failed is seen as not alive, and a moment later it has gone."""
    phase, age_s = post.report.phase, post.age_s
    return is_there(phase, age_s) and (phase is not Phase.FAILED or age_s < ALIVE_S)


def _with_replica(state: CellState | None, post: Post) -> CellState:
    report = post.report
    if state is None:
        return CellState(1, report.ongoing, report.slots, post.age_s, (report.replica,))
    return CellState(
        state.ready + 1,
        state.ongoing + report.ongoing,
        state.slots + report.slots,
        min(state.age_s, post.age_s),
        (*state.replicas, report.replica),
    )


def version_of(app: str) -> str:
    """`name@version` of an app, whichever cell it is."""
    return app.partition("--")[0]
