"""The cell of a pool that takes a request."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from random import Random

from modelyard.routing.choose import Candidate, choose
from modelyard.routing.fleet import Fleet
from modelyard.routing.pool import Cell, Pool


class InFlight:
    """This ingress's own requests by cell, counted as they come: posts are a second old."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def of(self, cell: Cell) -> int:
        return self._counts.get(cell.app, 0)

    @contextmanager
    def at(self, cell: Cell) -> Iterator[None]:
        """A request is there while the body runs."""
        self._counts[cell.app] = self._counts.get(cell.app, 0) + 1
        try:
            yield
        finally:
            left = self._counts[cell.app] - 1
            if left:
                self._counts[cell.app] = left
            else:
                del self._counts[cell.app]


def pick_cell(
    pool: Pool,
    key: str,
    fleet: Fleet,
    in_flight: InFlight,
    rng: Random,
    tried: Collection[Cell] = (),
) -> Cell:
    """The cell for a request with this affinity key ("" for none).

    `tried`: where it failed before; it goes elsewhere if there is an elsewhere. Raises ValueError
    for an empty pool.
    """
    cells = [cell for cell in pool.cells if cell not in tried] or pool.cells
    if len(cells) == 1:
        return cells[0]
    return cells[choose([candidate_of(cell, fleet, in_flight) for cell in cells], key, rng).chosen]


def candidate_of(cell: Cell, fleet: Fleet, in_flight: InFlight) -> Candidate:
    """A cell as `choose` sees it: weighed by the slots of its ready replicas."""
    state = fleet.state(cell.app)
    # Whichever is more: the post counts other ingresses' requests too, our own count is fresh.
    load = max(state.ongoing, in_flight.of(cell))
    return Candidate(cell.app, load, state.slots, state.age_s)
