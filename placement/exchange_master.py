"""The master programme of a defragmentation: which content each place of a window takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_matrix

from placement.evacuation import devices_of
from placement.exchange import Exchange
from placement.exchange_window import Window

MOVE_COST: Final = 1e-3  # of a place's price: among equals, fewer moves
# The nodes decide; the seconds are a fuse for a machine that is far too slow.
NODES: Final = 2000


@dataclass(frozen=True)
class ShadowPrices:
    """What the linear programme would pay: for a replica of each item, for a move less, and what
    each place's content costs it now."""

    item: Mapping[str, float]
    move: float
    place: Mapping[str, float]


class ExchangeMaster:
    """Minimise the price of the places in use.

    max_moves: in the window. per_device, beyond: at most so many moves for each device freed in the
    window, and so many more.
    """

    def __init__(
        self, window: Window, max_moves: float, per_device: float, beyond: float = 0.0
    ) -> None:
        self._window = window
        self._max_moves = max_moves
        self._beyond = beyond
        self._per_device = per_device
        self._columns: dict[Exchange, None] = {}
        self._items = window.items
        self._row = {place.name: index for index, place in enumerate(window.places)}
        total = sum(place.price for place in window.places)
        self._price = {p.name: p.price * len(window.places) / max(total, 1) for p in window.places}

    def add(self, exchanges: Iterable[Exchange]) -> bool:
        """Whether any of them is new."""
        before = len(self._columns)
        self._columns.update(dict.fromkeys(exchanges))
        return len(self._columns) > before

    def cost(self, one: Exchange, move: float = MOVE_COST) -> float:
        """In mean prices of a place. move: what one costs."""
        in_use = bool(one.content) or one.place not in self._window.emptiable
        return self._price[one.place] * in_use + move * one.moves

    def prices(self) -> ShadowPrices | None:
        """None where the linear programme has no answer."""
        found = linprog(
            self._costs(),
            self._at_most(),
            self._limits(),
            self._one_each(),
            np.ones(len(self._row)),
            method="highs",
        )
        if not found.success:
            return None
        rows = -found.ineqlin.marginals
        count = len(self._items)
        return ShadowPrices(
            dict(zip(self._items, rows[:count], strict=False)),
            MOVE_COST + float(rows[count] + rows[count + 1]),
            {name: float(found.eqlin.marginals[row]) for name, row in self._row.items()},
        )

    def chosen(self, within_s: float) -> list[Exchange] | None:
        """One for each place; None where the integer programme has no answer in time."""
        found = milp(
            self._costs(),
            integrality=np.ones(len(self._columns)),
            bounds=Bounds(0, 1),
            constraints=[
                LinearConstraint(self._at_most(), -np.inf, self._limits()),
                LinearConstraint(self._one_each(), 1, 1),
            ],
            options={"node_limit": NODES, "time_limit": within_s, "mip_rel_gap": self._gap()},
        )
        if found.x is None:
            return None
        return [one for one, x in zip(self._columns, found.x, strict=True) if x > 0.5]

    def _gap(self) -> float:
        """Of half a place: to prove that no move less would do takes longer than it is worth."""
        return 0.5 / max(len(self._row), 1)

    def _costs(self) -> NDArray[np.float64]:
        return np.array([self.cost(one) for one in self._columns])

    def _one_each(self) -> Any:
        rows = [self._row[one.place] for one in self._columns]
        shape = (len(self._row), len(rows))
        return csr_matrix((np.ones(len(rows)), (rows, range(len(rows)))), shape=shape)

    def _limits(self) -> NDArray[np.float64]:
        window = self._window
        cover = [-window.total[item] for item in self._items]
        caps = [cap.room for cap in window.caps]
        return np.array([*cover, self._max_moves, self._beyond, *caps], dtype=float)

    def _at_most(self) -> Any:
        """Rows: minus the replicas of each item; moves; moves beyond what they free; the caps."""
        item_row = {item: row for row, item in enumerate(self._items)}
        first = len(item_row)
        caps: dict[tuple[str, str], list[int]] = {}
        for index, cap in enumerate(self._window.caps):
            for place in cap.places:
                caps.setdefault((cap.item, place), []).append(first + 2 + index)
        devices = {place.name: devices_of(place) for place in self._window.places}
        entries: list[tuple[int, int, float]] = []
        for column, one in enumerate(self._columns):
            freed = not one.content and one.place in self._window.emptiable
            worth = self._per_device * devices[one.place] * freed
            entries += [(first, column, one.moves), (first + 1, column, one.moves - worth)]
            for item, count in one.content:
                entries.append((item_row[item], column, -count))
                entries += [(row, column, count) for row in caps.get((item, one.place), ())]
        rows, columns, values = zip(*entries, strict=True)
        shape = (first + 2 + len(self._window.caps), len(self._columns))
        return csr_matrix((values, (rows, columns)), shape=shape, dtype=float)
