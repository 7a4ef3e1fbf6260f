"""What an ingress does with the board for ever: read the fleet, share what died."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from cluster.board import Board
from modelyard.ingress.pipeline import Pipeline

log = logging.getLogger("modelyard.ingress")

READ_BOARD_S: Final = 0.5
BOARD_WAIT_S: Final = 2.0


class BoardStep:
    """One thing done with the board again and again. Logs when it begins to fail, and when it ends.

    Each time would be two lines a second for as long as the board is away.
    """

    def __init__(self, what: str, do: Callable[[], Awaitable[None]]) -> None:
        self._what = what
        self._do = do
        self._failing = False

    async def run(self) -> None:
        """Never raises but for a cancellation."""
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


def board_steps(pipeline: Pipeline, board: Board) -> list[BoardStep]:
    """Apart: a board of an earlier release outlives a deploy, and may know how to do only some."""

    async def read() -> None:
        pipeline.fleet.update(await board.read())

    async def share() -> None:
        await board.share_deaths(pipeline.attempts.suspects)

    return [
        BoardStep("reading the fleet from the board", read),
        BoardStep("sharing deaths through the board", share),
    ]


async def follow_board(pipeline: Pipeline) -> None:
    """Keep the fleet, and what killed replicas, as the board has it, for ever."""
    steps = board_steps(pipeline, Board())
    while True:
        for step in steps:
            await step.run()
        await asyncio.sleep(READ_BOARD_S)
