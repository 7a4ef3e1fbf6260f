"""What an ingress that is scraped knows of the placement."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from cluster.observe import serve_applications
from modelyard.control.reading import Reading
from modelyard.telemetry.placement_metrics import PlacementFigures
from placement.verify import Wrong
from placement.watched import Placement, read_placement

log = logging.getLogger("modelyard.placement")

# Serve's controller writes down every app for it: not for each of several Prometheis.
PERIOD_S: Final = 10.0
WITHIN_S: Final = 2.0  # as a scrape waits for everybody else


class PlacementWatch:
    """Reads when asked, at most once a period, and never holds a scrape up: a reading that is late
    is what the next scrape gets."""

    def __init__(
        self,
        read: Callable[[Reading], Placement | None] | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read or _read
        self._now = now
        self._last: PlacementFigures | None = None
        self._at = -PERIOD_S
        self._task: asyncio.Task[None] | None = None

    async def figures(self, reading: Reading) -> PlacementFigures | None:
        """None where nothing was placed, or nothing could be read yet."""
        if (self._task is None or self._task.done()) and self._now() - self._at >= PERIOD_S:
            self._at = self._now()
            self._task = asyncio.create_task(self._look(reading))
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=WITHIN_S)
        return self._last

    async def _look(self, reading: Reading) -> None:
        try:
            found = await asyncio.to_thread(self._read, reading)
        except Exception as error:  # noqa: BLE001  the edge of a background task
            log.warning("the placement could not be read: %r", error)
            self._last = None  # old figures would look like good ones
            return
        self._last = None if found is None else figures_of(found)


def figures_of(placement: Placement) -> PlacementFigures:
    counts = Counter(one.kind for one in placement.mismatches)
    waited: dict[tuple[str, str], float] = {}
    for one in placement.pending:
        key = (one.app, one.reason.value)
        waited[key] = max(waited.get(key, 0.0), one.waited_s)
    mismatches = {kind.value: counts[kind] for kind in Wrong}
    return PlacementFigures(mismatches, waited, placement.planned, placement.used)


def _read(reading: Reading) -> Placement | None:
    return read_placement(serve_applications(), reading, time.time())
