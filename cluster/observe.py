"""A driver's view of a running platform: each app as Serve and the board see it."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from cluster.board import NAMESPACE, Board
from cluster.replica_view import ReplicaView, plain, replica_views
from cluster.running import Running
from modelyard.contract.errors import ModelyardError
from modelyard.control.reading import Decided, Reading
from modelyard.lifecycle.cause import Cause
from modelyard.lifecycle.report import Post

__all__ = [
    "AppView",
    "LastFailure",
    "ReplicaView",
    "Unreachable",
    "connected",
    "read_apps",
    "read_platform",
    "serve_applications",
    "views_of",
]

BOARD_WITHIN_S: Final = 15.0
DECIDED_GONE_S: Final = 10.0  # the controller says it twice a second


class Unreachable(ModelyardError):
    """The cluster does not answer."""


@dataclass(frozen=True, slots=True)
class LastFailure:
    """Why an app's last replica failed, and how long ago that was."""

    cause: str
    cause_kind: Cause | None
    age_s: float


@dataclass(frozen=True, slots=True)
class AppView:
    """An app: Serve's status, message and counts by state, and its replicas that post.

    ready: replicas that Serve sends requests to; starting: those on their way; desired: Serve's
    target. why: the scaling policy's reason, empty for a fixed number of replicas. failure: the
    last one, of a replica that may be gone by now; None once another became ready after it.
    """

    name: str
    status: str
    message: str
    states: dict[str, int]
    replicas: tuple[ReplicaView, ...]
    ready: int = 0
    starting: int = 0
    desired: int = 0
    why: str = ""
    failure: LastFailure | None = None


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
    return read_platform(board)[0]


def read_platform(board: Board) -> tuple[list[AppView], Reading]:
    """Every app that Serve knows, by name, and all that the board holds. Raises Unreachable."""
    from ray.exceptions import RayError

    try:
        reading = _read(board)
        applications = serve_applications()
    except (RayError, TimeoutError) as error:
        raise Unreachable(f"the cluster does not answer: {error}") from error
    return views_of(applications, reading), reading


def views_of(applications: Mapping[str, Any], reading: Reading) -> list[AppView]:
    """From `applications` of Serve's details, as its REST gives them too, and the board's word."""
    posts: dict[str, list[Post]] = {}
    for post in reading.posts:
        posts.setdefault(post.report.app, []).append(post)
    decisions = {decided.app: decided for decided in reading.decisions}
    failures = {post.report.app: _failure(post) for post in reading.failures}
    now_s = time.time()
    return [
        replace(
            _app(name, app, replica_views(app, posts.get(name, []), now_s), decisions.get(name)),
            failure=failures.get(name),
        )
        for name, app in sorted(applications.items())
    ]


def _failure(post: Post) -> LastFailure:
    report = post.report
    return LastFailure(report.cause or "no cause given", report.cause_kind, post.age_s)


def _read(board: Board) -> Reading:
    try:
        return board.read_all_blocking(BOARD_WITHIN_S)
    except AttributeError:  # a board of an earlier release outlives a deploy
        posts = tuple(board.read_blocking(BOARD_WITHIN_S))
        return Reading(posts, (), (), None, None, up_s=0.0)


def serve_applications() -> Mapping[str, Any]:
    """Serve's details, which `serve.status` makes its answer from and drops the targets of."""
    from ray.serve.context import _get_global_client

    client = _get_global_client(raise_if_no_controller_running=False)
    return {} if client is None else client.get_serve_details()["applications"]


def _app(
    name: str, app: Mapping[str, Any], replicas: list[ReplicaView], decided: Decided | None
) -> AppView:
    deployments = list(app["deployments"].values())
    messages = [app["message"], *(deployment["message"] for deployment in deployments)]
    states = Counter(
        plain(replica["state"]) for deployment in deployments for replica in deployment["replicas"]
    )
    desired = sum(deployment["target_num_replicas"] for deployment in deployments)
    return AppView(
        name=name,
        status=plain(app["status"]),
        message=next((message for message in messages if message), ""),
        states=dict(states),
        replicas=tuple(sorted((r for r in replicas if not r.gone), key=lambda r: r.replica)),
        ready=states["RUNNING"],
        starting=states["STARTING"],
        desired=desired,
        why=_why(desired, decided),
    )


def _why(desired: int, decided: Decided | None) -> str:
    if decided is None or decided.age_s > DECIDED_GONE_S:
        return ""
    if decided.replicas == desired:
        return decided.why
    # Serve waits for its up-scale or down-scale delay before it follows.
    return f"{decided.why}: soon {decided.replicas}"
