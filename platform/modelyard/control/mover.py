"""Moves rollouts: each second, and at once when evidence comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from modelyard.contract.errors import Overloaded
from modelyard.control.keeper import StateKeeper
from modelyard.control.rollout_desk import RolloutDesk
from modelyard.rollout.record import RolloutRecord

log = logging.getLogger("modelyard.control")


class RolloutMover:
    """One per control. Rollbacks first, each for itself, and none waits for another's write."""

    def __init__(
        self,
        keeper: StateKeeper,
        desk: RolloutDesk,
        publish: Callable[[], Awaitable[object]],
        wall: Callable[[], float],
    ) -> None:
        self._keeper = keeper
        self._desk = desk
        self._publish = publish
        self._wall = wall
        self._ending: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._woken: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Evidence has come. A rollback that it brings goes out now, even while a slow store keeps
        `move` waiting; steps up wait for the next second."""
        if self._woken is None or self._woken.done():
            self._woken = asyncio.create_task(self._end_what_fails())
            self._keep(self._woken)

    async def move(self) -> None:
        """Once a second. What the store did not take is tried again in the next one."""
        self._desk.settle(self._keeper.state, self._wall())
        await self._keeper.retry()
        await self._end_what_fails()
        async with self._keeper.changing:
            while (move := self._desk.next_move(self._keeper.state, self._wall())) is not None:
                changed, decision = move
                try:
                    await self._keeper.save(changed)
                except Overloaded as error:
                    log.warning("a rollout does not move: %s", error)
                    return
                log.info("a rollout: %s, %s", decision.what, decision.why)
                self._desk.settle(self._keeper.state, self._wall())

    async def close(self) -> None:
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _end_what_fails(self) -> None:
        state, now = self._keeper.state, self._wall()
        failing = [one for one in self._desk.rollbacks(state, now) if one.id not in self._ending]
        if failing:
            await asyncio.gather(*(self._end(record) for record in failing))

    async def _end(self, record: RolloutRecord) -> None:
        log.error("the rollout %s is rolled back: %s", record.id, record.reason)
        self._ending.add(record.id)
        try:
            await self._keeper.roll_back(record)
        finally:
            self._ending.discard(record.id)
        self._desk.settle(self._keeper.state, self._wall())
        await self._publish()

    def _keep(self, task: asyncio.Task[None]) -> None:
        """The loop holds tasks weakly."""
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("rollouts could not be looked at: %r", error, exc_info=error)
