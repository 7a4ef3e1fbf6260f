"""What an ingress does with the board for ever: tell, read the fleet, share what died."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cluster.board import Board
from modelyard.ingress.pipeline import Pipeline

log = logging.getLogger("modelyard.ingress")

EXCHANGE_S: Final = 0.2
SHARE_EACH: Final = 3  # exchanges
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
        self._exchange = BoardStep("the exchange with the board", self._exchanged)
        self._read = BoardStep("reading the fleet from the board", self._fleet_read)
        self._share = BoardStep("sharing deaths through the board", self._deaths_shared)

    async def run(self) -> None:
        """For ever."""
        turn = 0
        while True:
            await self.step(turn)
            turn += 1
            await asyncio.sleep(EXCHANGE_S)

    async def step(self, turn: int) -> None:
        if not await self._exchange.run():
            await self._read.run()
        self._pipeline.refresh()
        if turn % SHARE_EACH == 0:
            await self._share.run()

    async def _exchanged(self) -> None:
        sent = self._pipeline.now()
        reading = await self._board.exchange(self._pipeline.post())
        self._pipeline.take(reading)
        self._pipeline.metering.gate.posted(sent, self._pipeline.now())

    async def _fleet_read(self) -> None:
        self._pipeline.fleet.update(await self._board.read())

    async def _deaths_shared(self) -> None:
        await self._board.share_deaths(self._pipeline.attempts.suspects)
