"""Asks every process of the platform for its metrics, all at once, and waits for none too long.

Each deployment's replicas are called through Serve's broadcast. Rejected: replicas that push their
text to the board each second (vLLM's families alone are tens of kilobytes, written whether or not
anybody scrapes), and a port per replica (one more to guard, and Prometheus would have to find it).
"""

import asyncio
import logging
from typing import Any, Final

from ray import serve

from cluster.board import Board
from deployments.broadcast import ask_all
from deployments.placement_watch import PlacementWatch
from modelyard.config.table import Table
from modelyard.control.reading import Reading
from modelyard.routing.pool import Cell
from modelyard.telemetry.expected import model_cells, unheard
from modelyard.telemetry.exposition import Scrape, merged
from modelyard.telemetry.fleet_metrics import FleetMetrics
from modelyard.telemetry.placement_metrics import PlacementMetrics
from modelyard.telemetry.process_metrics import ProcessMetrics

log = logging.getLogger("modelyard.scrape")

WITHIN_S: Final = 2.0  # each process; Prometheus waits ten for all of them
CONTROL: Final = Cell("control", "Control")


class PlatformScraper:
    """One per ingress process. `own` is that process, `ingress` the deployment it belongs to."""

    def __init__(self, own: ProcessMetrics, ingress: Cell, board: Board) -> None:
        self._own = own
        self._ingress = ingress
        self._board = board
        self._reading: Reading | None = None
        self._handles: dict[Cell, Any] = {}
        self._placement = PlacementWatch()

    async def scrape(self, token: str, table: Table | None) -> str:
        """All families of all processes. Raises nothing for one that does not answer."""
        fresh = await self._read()
        known = model_cells(self._reading) if self._reading is not None else frozenset()
        cells = sorted(known | {self._ingress, CONTROL})
        answers = await asyncio.gather(*(self._ask(cell, token) for cell in cells))
        own = await self._own.read()
        scrapes = {own.process: own}
        silent: dict[str, int] = {}
        for cell, (answered, unanswered) in zip(cells, answers, strict=True):
            silent[cell.app] = unanswered
            for scrape in answered:
                scrapes.setdefault(scrape.process, scrape)
        missing = dict.fromkeys(scrapes, False) | {("board", "board"): fresh is None}
        if self._reading is not None:
            gone = unheard(self._reading, self._ingress.app, scrapes.keys(), silent)
            missing |= dict.fromkeys(gone, True)
        if not any(app == CONTROL.app for app, _ in scrapes):
            missing[CONTROL.app, "control"] = True
        fleet = FleetMetrics(fresh, table, missing)
        placed = await self._placement.figures(fresh) if fresh is not None else None
        placement = [PlacementMetrics(placed).scrape()] if placed is not None else []
        whole = [*scrapes.values(), *placement]
        return await asyncio.to_thread(lambda: merged([*whole, fleet.scrape()]))

    async def _read(self) -> Reading | None:
        try:
            async with asyncio.timeout(WITHIN_S):
                self._reading = await self._board.read_all()
        except Exception as error:  # noqa: BLE001  the board is a process like the others
            log.warning("the board did not answer a scrape: %r", error)
            return None
        return self._reading

    async def _ask(self, cell: Cell, token: str) -> tuple[list[Scrape], int]:
        """What a deployment's replicas answered, and how many of them did not."""
        answers = await ask_all(self._handle(cell), "scrape", token, timeout_s=WITHIN_S)
        scrapes = [one for one in answers.given if isinstance(one, Scrape)]
        return scrapes, answers.asked - len(scrapes)

    def _handle(self, cell: Cell) -> Any:
        handle = self._handles.get(cell)
        if handle is None:
            handle = self._handles[cell] = serve.get_deployment_handle(
                cell.deployment, app_name=cell.app, _check_exists=False
            )
        return handle
