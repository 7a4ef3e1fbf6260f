"""A driver's view of a running platform: each app as Serve and the board see it."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from cluster.board import NAMESPACE, Board
from cluster.local import Running
from modelyard.contract.errors import ModelyardError
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport
from modelyard.routing.fleet import ALIVE_S


class Unreachable(ModelyardError):
    """The cluster does not answer."""


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica's phase and the seconds in it, by its last post; `age_s` is that post's age."""

    replica: str
    phase: Phase
    phase_s: float
    total_s: float
    ongoing: int
    pid: int
    age_s: float
    cause: str | None

    @property
    def gone(self) -> bool:
        """Ready replicas post each second: a silent one is not there. Others post once a phase."""
        return self.phase is Phase.READY and self.age_s > ALIVE_S


@dataclass(frozen=True, slots=True)
class AppView:
    """An app: Serve's status, message and counts by state, and its replicas that post."""

    name: str
    status: str
    message: str
    states: dict[str, int]
    replicas: tuple[ReplicaView, ...]


@contextmanager
def connected(running: Running) -> Iterator[None]:
    """Join the cluster as a driver, quietly. Raises Unreachable."""
    os.environ["RAY_AUTH_MODE"] = "token"
    import ray

    try:
        ray.init(
            address=running.address,
            namespace=NAMESPACE,
            log_to_driver=False,
            logging_level=logging.ERROR,
        )
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        raise Unreachable(f"no cluster answers at {running.address}: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()


def read_apps(board: Board) -> list[AppView]:
    """Every app that Serve knows, by name. Raises Unreachable."""
    from ray import serve
    from ray.exceptions import RayError

    try:
        posts = board.read_blocking(timeout_s=15.0)
        status = serve.status()
    except (RayError, TimeoutError) as error:
        raise Unreachable(f"the cluster does not answer: {error}") from error
    views: dict[str, list[ReplicaView]] = {}
    for post in posts:
        views.setdefault(post.report.app, []).append(_view(post.report, post.age_s))
    return [
        _app(name, app, views.get(name, [])) for name, app in sorted(status.applications.items())
    ]


def _app(name: str, app: Any, replicas: list[ReplicaView]) -> AppView:
    shown = tuple(sorted((r for r in replicas if not r.gone), key=lambda r: r.replica))
    messages = [app.message, *(d.message for d in app.deployments.values())]
    states: Counter[str] = Counter()
    for deployment in app.deployments.values():
        states.update({str(state): count for state, count in deployment.replica_states.items()})
    message = next((m for m in messages if m), "")
    return AppView(name, str(app.status.value), message, dict(states), shown)


def _view(report: ReplicaReport, age_s: float) -> ReplicaView:
    phase_s = report.phase_s + age_s
    return ReplicaView(
        replica=report.replica,
        phase=report.phase,
        phase_s=phase_s,
        total_s=sum(seconds for _, seconds in report.phases)
        + (0 if report.phase is Phase.READY else phase_s),
        ongoing=report.ongoing,
        pid=report.pid,
        age_s=age_s,
        cause=report.cause,
    )
