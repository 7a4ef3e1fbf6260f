"""What moving replicas needs of a running platform: deploy a file, see what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx
import yaml

from cluster.board import Board
from cluster.observe import AppView, Unreachable, read_platform
from cluster.ray_token import ray_token
from cluster.running import Running
from cluster.serve_rest import deployed_by_rest
from modelyard.contract.errors import ModelyardError
from modelyard.control.ingress_post import IngressPost
from modelyard.control.published import EVERYTHING
from modelyard.control.reading import Reading
from modelyard.lifecycle.report import Post
from modelyard.lifecycle.silence import ALIVE_S, is_there
from modelyard.routing.fleet import version_of
from modelyard.scaling.version_signal import INGRESS_SILENT_S

DEPLOY_WITHIN_S: Final = 60.0
_FAILED: Final = "DEPLOY_FAILED"
_MAX_TEXT: Final = 500


class DeployRefused(ModelyardError):
    """Serve did not take the file. The text is its own."""


@dataclass(frozen=True, slots=True)
class BoardLoad:
    """Requests in flight and slots of ready replicas by version, requests that wait, and who froze
    everything ("" for nobody)."""

    in_flight: Mapping[str, int]
    slots: Mapping[str, int]
    waiting: int
    frozen: str


class LiveApps:
    """Use inside `cluster.observe.connected`. What looks raises Unreachable, but for `load`."""

    def __init__(
        self,
        running: Running,
        read: Callable[[], tuple[list[AppView], Reading]] | None = None,
        transport: httpx.BaseTransport | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """read, transport: in tests."""
        board = Board()
        self._read = read or (lambda: read_platform(board))
        self._running = running
        self._transport = transport
        self._now = now
        self._drains: dict[str, _Drain] = {}

    def deploy(self, config: bytes) -> None:
        """What `serve deploy` does with the file. Raises DeployRefused."""
        try:
            with httpx.Client(transport=self._transport, timeout=DEPLOY_WITHIN_S) as client:
                answer = client.put(
                    f"{self._running.dashboard_url}/api/serve/applications/",
                    headers={"Authorization": f"Bearer {ray_token()}"},
                    json=yaml.safe_load(config),
                )
        except httpx.HTTPError as error:
            raise DeployRefused(
                f"Serve does not answer ({error}): whether the file is deployed is not known; "
                "look with `modelyard status`, then try again"
            ) from error
        if answer.status_code != 200:
            raise DeployRefused(f"Serve refuses the file: {answer.text[-_MAX_TEXT:]}")

    def deployed(self) -> dict[str, Mapping[str, Any]]:
        """The config that each app was last deployed with, by name."""
        deployed = deployed_by_rest(self._running, self._transport)
        # One that is being deleted is there without any, for as long as its requests take.
        return {name: config for name, config in deployed.items() if config}

    def ready(self) -> dict[str, int]:
        """By app: replicas that Serve runs and that post that they are ready."""
        apps, reading = self._look()
        posted = Counter(post.report.app for post in reading.posts if _ready(post))
        return {app.name: min(app.ready, posted[app.name]) for app in apps}

    def ongoing(self, app: str) -> int | None:
        """None before every ingress obeys the app's drain and its replicas have posted since."""
        _, reading = self._look()
        if app not in drained(reading):
            self._drains.pop(app, None)
            return None
        assert reading.published is not None  # it has the drain
        drain = self._drains.setdefault(app, _Drain(reading.published.order))
        if not obeyed(reading, drain.order):
            drain.obeyed_at = None
            return None
        if drain.obeyed_at is None:
            drain.obeyed_at = self._now()
        return ongoing_of(reading, app, self._now() - drain.obeyed_at)

    def failure(self, app: str) -> str:
        """Serve's or the replica's own words; "" while it may still start."""
        apps, _ = self._look()
        found = next((one for one in apps if one.name == app), None)
        if found is None or found.status != _FAILED:
            return ""
        return found.failure.cause if found.failure is not None else found.message or _FAILED

    def load(self) -> BoardLoad | None:
        """None while the board does not answer, or no ingress has told it anything."""
        try:
            _, reading = self._look()
        except Unreachable:
            return None
        return load_of(reading) if living(reading) else None

    def _look(self) -> tuple[list[AppView], Reading]:
        return self._read()


@dataclass(slots=True)
class _Drain:
    """order: the word of control with which it was first seen. obeyed_at: when every ingress was
    first seen to have that word; None before."""

    order: tuple[int, int]
    obeyed_at: float | None = None


def ongoing_of(reading: Reading, app: str, obeyed_s: float) -> int | None:
    """Requests at an app's replicas, `obeyed_s` after every ingress was seen to obey its drain."""
    posts = [post for post in reading.posts if post.report.app == app]
    there = [post for post in posts if is_there(post.report.phase, post.age_s)]
    oldest_s = max((post.age_s for post in there), default=0.0)
    return sum(post.report.ongoing for post in there) if obeyed_s >= oldest_s else None


def obeyed(reading: Reading, order: tuple[int, int]) -> bool:
    """Whether every ingress that lives has this word of control, or a later one."""
    # What an ingress of an earlier release sends has no order.
    known = [getattr(post, "order", (0, 0)) for post in living(reading)]
    return bool(known) and min(known) >= order


def living(reading: Reading) -> list[IngressPost]:
    """What a killed ingress told last would be counted for as long as the board keeps it."""
    return [entry.post for entry in reading.ingresses if entry.age_s < INGRESS_SILENT_S]


def drained(reading: Reading) -> frozenset[str]:
    overrides = reading.published.overrides if reading.published is not None else ()
    return frozenset(one.target for one in overrides if one.kind == "drain")


def load_of(reading: Reading) -> BoardLoad:
    in_flight: Counter[str] = Counter()
    waiting = 0
    for post in living(reading):
        in_flight.update(dict(post.in_flight))
        waiting += sum(requests for _, _, requests in post.waiting)
    slots: Counter[str] = Counter()
    for open_ in _routed(reading.posts, drained(reading)):
        slots[version_of(open_.report.app)] += open_.report.slots
    return BoardLoad(in_flight, slots, waiting, _frozen_by(reading))


def _routed(posts: Iterable[Post], closed: frozenset[str]) -> list[Post]:
    return [post for post in posts if _ready(post) and post.report.app not in closed]


def _ready(post: Post) -> bool:
    return post.report.ready and post.age_s < ALIVE_S


def _frozen_by(reading: Reading) -> str:
    overrides = reading.published.overrides if reading.published is not None else ()
    found = (one for one in overrides if one.kind == "freeze" and one.target == EVERYTHING)
    return next((one.author for one in found), "")


__all__ = ["BoardLoad", "DeployRefused", "LiveApps", "drained", "load_of", "ongoing_of"]
