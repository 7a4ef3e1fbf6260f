"""What an ingress does with the board for ever: tell, read the fleet, share what died."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Final

from cluster.board import Board
from modelyard.ingress.pipeline import Pipeline

log = logging.getLogger("modelyard.ingress")

EXCHANGE_S: Final = 0.2
# While somebody waits for a slot: one that comes free at another ingress is idle until it is told.
HURRIED_S: Final = 0.05
SHARE_EACH_S: Final = 0.6
BOARD_WAIT_S: Final = 2.0


class BoardStep:
    """One thing done with the board again and again. Logs when it begins to fail, and when it ends.

    Each time would be ten lines a second for as long as the board is away.
    """

    def __init__(self, what: str, do: Callable[[], Awaitable[None]]) -> None:
        self._what = what
        self._do = do
        self._failing = False

    async def run(self) -> bool:
        """Whether it worked. Never raises but for a cancellation."""
        try:
            async with asyncio.timeout(BOARD_WAIT_S):
                await self._do()
        except Exception as error:  # noqa: BLE001  the edge of a background task
            if not self._failing:
                log.warning("%s fails, the last state stays: %r", self._what, error)
            self._failing = True
        else:
            if self._failing:
                log.warning("%s works again", self._what)
            self._failing = False
        return not self._failing


class FollowBoard:
    """Keeps a pipeline's fleet, control's word and what killed replicas as the board has them.

    A board of an earlier release outlives a deploy and knows no
    `exchange`: then the fleet alone is read, as that release did.
    """

    def __init__(self, pipeline: Pipeline, board: Board) -> None:
        self._pipeline = pipeline
        self._board = board
        self._shared_at = -inf
        self._exchange = BoardStep("the exchange with the board", self._exchanged)
        self._read = BoardStep("reading the fleet from the board", self._fleet_read)
        self._share = BoardStep("sharing deaths through the board", self._deaths_shared)

    async def run(self) -> None:
        """For ever."""
        while True:
            await self.step()
            await self._pause()

    async def step(self) -> None:
        if not await self._exchange.run():
            await self._read.run()
        self._pipeline.refresh()
        if self._pipeline.now() - self._shared_at >= SHARE_EACH_S:
            self._shared_at = self._pipeline.now()
            await self._share.run()

    async def _pause(self) -> None:
        turnstile = self._pipeline.turnstile
        await asyncio.sleep(HURRIED_S)
        if not turnstile.lanes.is_contended:
            with suppress(TimeoutError):
                async with asyncio.timeout(EXCHANGE_S - HURRIED_S):
                    await turnstile.pressed.wait()
        turnstile.pressed.clear()

    async def _exchanged(self) -> None:
        sent = self._pipeline.now()
        reading = await self._board.exchange(self._pipeline.post())
        self._pipeline.take(reading)
        self._pipeline.metering.gate.posted(sent, self._pipeline.now())

    async def _fleet_read(self) -> None:
        self._pipeline.fleet.update(await self._board.read())

    async def _deaths_shared(self) -> None:
        await self._board.share_deaths(self._pipeline.attempts.suspects)
