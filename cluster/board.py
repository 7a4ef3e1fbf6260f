"""The board: a named detached actor that keeps each replica's last report, and what died with them.

It outlives deploys and is never waited for: a poster fires and forgets, a reader keeps its last
reading when the board is slow. It holds no truth of its own, so a restart loses nothing that the
next second's posts do not bring back.
"""

from __future__ import annotations

import time
from typing import Any, Final

from modelyard.admission.suspects import Deaths, Suspects
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport

NAME: Final = "modelyard-board"
NAMESPACE: Final = "modelyard"
FORGET_AFTER_S: Final = 120.0
FORGET_STARTING_AFTER_S: Final = 3600.0  # it posts once a phase, and a phase can be long


class BoardActor:
    """Runs in its own process. Async methods, so that a slow reader never holds up a post."""

    def __init__(self) -> None:
        self._posts: dict[str, tuple[ReplicaReport, float]] = {}
        self._suspects = Suspects(time.monotonic)

    async def post(self, report: ReplicaReport) -> None:
        self._posts[report.replica] = (report, time.monotonic())

    async def read(self) -> list[Post]:
        now = time.monotonic()
        self._posts = {
            replica: (report, at)
            for replica, (report, at) in self._posts.items()
            if now - at < _kept_s(report)
        }
        return [Post(report, now - at) for report, at in self._posts.values()]

    async def share_deaths(self, deaths: Deaths) -> Deaths:
        self._suspects.merge(deaths)
        return self._suspects.deaths()


def _kept_s(report: ReplicaReport) -> float:
    settled = report.phase in (Phase.READY, Phase.FAILED)
    return FORGET_AFTER_S if settled else FORGET_STARTING_AFTER_S


class Board:
    """A process's door to the board; finds or creates it at first use."""

    def __init__(self) -> None:
        self._actor: Any = None

    def post(self, report: ReplicaReport) -> None:
        """Send and forget. Losing one is harmless: the next replaces it."""
        self._connect().post.remote(report)

    async def confirm(self, report: ReplicaReport) -> None:
        """Send and wait until it is there. Raises RayError, and looks for a new board next time."""
        await self._call("post", report)

    async def read(self) -> list[Post]:
        """Every live post with its age. The caller bounds the wait."""
        return await self._call("read")  # type: ignore[no-any-return]

    async def share_deaths(self, suspects: Suspects) -> None:
        """Tell every ingress what died at this one, and take what they saw. Raises RayError."""
        suspects.merge(await self._call("share_deaths", suspects.deaths()))

    async def _call(self, method: str, *arguments: Any) -> Any:
        from ray.exceptions import RayError

        try:
            return await getattr(self._connect(), method).remote(*arguments)
        except RayError:
            self._actor = None  # a board that was killed for good has a successor under its name
            raise

    def read_blocking(self, timeout_s: float) -> list[Post]:
        """For a driver without a loop. Raises RayError when nothing answers."""
        import ray

        return ray.get(self._connect().read.remote(), timeout=timeout_s)  # type: ignore[no-any-return]

    def _connect(self) -> Any:
        # Here and not at the top: Ray reads its environment when it is first imported, and the
        # command line must set it before (and stay quick where it needs no Ray at all).
        import ray

        if self._actor is None:
            self._actor = (
                ray.remote(BoardActor)
                .options(
                    name=NAME,
                    namespace=NAMESPACE,
                    lifetime="detached",
                    get_if_exists=True,
                    max_restarts=-1,
                    max_task_retries=0,
                    num_cpus=0,
                )
                .remote()
            )
        return self._actor
