"""The board: a named detached actor that keeps the last word of each replica, ingress and control.

It outlives deploys and is never waited for: a poster fires and forgets, a reader keeps its last
reading when the board is slow. It decides nothing and holds no truth of its own, so a restart loses
nothing that the next second's posts do not bring back.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any, Final

from cluster.awake import TICK_S, AwakeClock
from modelyard.admission.suspects import Deaths, Suspects
from modelyard.control.ingress_post import IngressPost, Wish
from modelyard.control.published import Published, aged, newer
from modelyard.control.reading import Decided, IngressEntry, Reading
from modelyard.lifecycle.drain import DrainOrder, drain_order
from modelyard.lifecycle.failures import Failures
from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import Post, ReplicaReport
from modelyard.lifecycle.restarts import Restarts

NAME: Final = "modelyard-board"
NAMESPACE: Final = "modelyard"
FORGET_AFTER_S: Final = 120.0


class BoardActor:
    """Runs in its own process. Async methods, so that a slow reader never holds up a post."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._posts: dict[str, tuple[ReplicaReport, float]] = {}
        self._ingresses: dict[str, tuple[IngressPost, float]] = {}
        self._published: tuple[Published, float] | None = None
        self._decided: tuple[tuple[Decided, ...], float] = ((), self._began)
        self._suspects = Suspects(time.monotonic)
        self._restarts = Restarts()
        self._failures = Failures()
        # Of the posts: their ages decide who died, and a board that was paused has heard nobody.
        self._awake = AwakeClock(time.monotonic)
        self._ticking: asyncio.Task[None] | None = None

    async def post(self, report: ReplicaReport) -> DrainOrder | None:
        """Take a replica's word; the answer is an operator's order to it, if there is one.

        What failed stays failed: a thread's last word may overtake a post of the loop.
        """
        self._keep_ticking()
        held = self._posts.get(report.replica)
        if held is None or held[0].phase is not Phase.FAILED:
            now = self._awake.now()
            self._posts[report.replica] = (report, now)
            self._failures.heard(report, now)
            self._restarts.heard(report)
        published, _ = self._last_word(time.monotonic())
        return drain_order(published, report.replica)

    async def read(self) -> list[Post]:
        self._keep_ticking()
        now = self._awake.now()
        self._restarts.look(Post(report, now - at) for report, at in self._posts.values())
        forgotten = [
            replica for replica, (_, at) in self._posts.items() if now - at >= FORGET_AFTER_S
        ]
        for replica in forgotten:
            del self._posts[replica]
        self._restarts.forget(forgotten)
        return [Post(report, now - at) for report, at in self._posts.values()]

    async def exchange(self, post: IngressPost) -> Reading:
        if post.word is not None:
            await self.publish(post.word)
        self._ingresses[post.ingress] = (replace(post, word=None), time.monotonic())
        return await self.read_all()

    async def read_all(self) -> Reading:
        now = time.monotonic()
        self._ingresses = {
            ingress: (post, at)
            for ingress, (post, at) in self._ingresses.items()
            if now - at < FORGET_AFTER_S
        }
        entries = tuple(IngressEntry(post, now - at) for post, at in self._ingresses.values())
        published, age_s = self._last_word(now)
        return Reading(
            posts=tuple(await self.read()),
            ingresses=entries,
            wishes=_wishes(entries),
            published=published,
            published_age_s=age_s,
            up_s=now - self._began,
            decisions=self._decisions(now),
            restarts=self._restarts.totals(),
            failures=self._failures.last(self._awake.now()),
        )

    async def publish(self, published: Published) -> Published:
        """Keep the later word. What is returned tells an older control that it was succeeded."""
        now = time.monotonic()
        held, _ = self._last_word(now)
        kept = newer(held, published)
        assert kept is not None
        if kept is published:
            self._published = (published, now)
        return kept

    async def decided(self, decisions: tuple[Decided, ...]) -> None:
        """The controller's whole list: an app that is gone from it is gone from here."""
        self._decided = (decisions, time.monotonic())

    async def share_deaths(self, deaths: Deaths) -> Deaths:
        self._suspects.merge(deaths)
        return self._suspects.deaths()

    def _keep_ticking(self) -> None:
        # Not in __init__, which Ray runs outside the loop.
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())

    async def _tick(self) -> None:
        while True:
            self._awake.now()
            await asyncio.sleep(TICK_S)

    def _decisions(self, now: float) -> tuple[Decided, ...]:
        decisions, at = self._decided
        return tuple(replace(one, age_s=one.age_s + now - at) for one in decisions)

    def _last_word(self, now: float) -> tuple[Published | None, float | None]:
        if self._published is None:
            return None, None
        published, at = self._published
        return aged(published, now - at), now - at


def _wishes(entries: tuple[IngressEntry, ...]) -> tuple[Wish, ...]:
    """The largest live wish for each version."""
    largest: dict[str, Wish] = {}
    for entry in entries:
        for wish in entry.post.wishes:
            left = replace(wish, left_s=wish.left_s - entry.age_s)
            held = largest.get(wish.version)
            if left.left_s > 0 and (held is None or _size(left) > _size(held)):
                largest[wish.version] = left
    return tuple(sorted(largest.values(), key=lambda wish: wish.version))


def _size(wish: Wish) -> tuple[int, float]:
    return wish.replicas, wish.left_s


class Board:
    """A process's door to the board; finds or creates it at first use."""

    def __init__(self) -> None:
        self._actor: Any = None

    def post(self, report: ReplicaReport) -> None:
        """Send and forget. Losing one is harmless: the next replaces it."""
        self._connect().post.remote(report)

    async def confirm(self, report: ReplicaReport) -> DrainOrder | None:
        """Send and wait until it is there. Raises RayError, and looks for a new board next time.

        Returns an operator's order to this replica (None from a board of an earlier release too).
        """
        return await self._call("post", report)  # type: ignore[no-any-return]

    def confirm_blocking(self, report: ReplicaReport, timeout_s: float) -> None:
        """The same from a thread, for a loop that may be stuck. Where the board has died for good,
        its successor is told. Raises RayError when neither took it in time."""
        from ray.exceptions import RayError

        until = time.monotonic() + timeout_s
        try:
            self._confirm(report, timeout_s)
        except RayError:
            self._actor = None
            if (left_s := until - time.monotonic()) <= 0:
                raise
            self._confirm(report, left_s)

    def _confirm(self, report: ReplicaReport, timeout_s: float) -> None:
        import ray

        ray.get(self._connect().post.remote(report), timeout=timeout_s)

    async def read(self) -> list[Post]:
        """Every live post with its age. The caller bounds the wait."""
        return await self._call("read")  # type: ignore[no-any-return]

    async def exchange(self, post: IngressPost) -> Reading:
        """Tell what this ingress does and needs, and read all. The caller bounds the wait."""
        return await self._call("exchange", post)  # type: ignore[no-any-return]

    async def read_all(self) -> Reading:
        """Everything, without a post. The caller bounds the wait."""
        return await self._call("read_all")  # type: ignore[no-any-return]

    async def publish(self, published: Published) -> Published:
        """Control's word. Returns the later of it and what the board held. Raises RayError."""
        return await self._call("publish", published)  # type: ignore[no-any-return]

    def decided(self, decisions: tuple[Decided, ...]) -> None:
        """Send and forget, for `modelyard status`. Losing one is harmless: the next is whole."""
        self._connect().decided.remote(decisions)

    async def share_deaths(self, suspects: Suspects) -> None:
        """Tell every ingress what died at this one, and take what they saw. Raises RayError."""
        suspects.merge(await self._call("share_deaths", suspects.deaths()))

    async def _call(self, method: str, *arguments: Any) -> Any:
        from ray.exceptions import RayError

        try:
            # On a thread: finding an actor asks the head, and the loop must not wait for it.
            actor = self._actor or await asyncio.to_thread(self._connect)
            return await getattr(actor, method).remote(*arguments)
        except RayError:
            self._actor = None  # a board that was killed for good has a successor under its name
            raise

    def read_blocking(self, timeout_s: float) -> list[Post]:
        """For a driver without a loop. Raises RayError when nothing answers."""
        import ray

        return ray.get(self._connect().read.remote(), timeout=timeout_s)  # type: ignore[no-any-return]

    def read_all_blocking(self, timeout_s: float) -> Reading:
        """For a driver or a thread without a loop. Raises RayError when nothing answers.

        AttributeError: the board of an earlier release, which knows only `read`.
        """
        import ray

        return ray.get(self._connect().read_all.remote(), timeout=timeout_s)  # type: ignore[no-any-return]

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
