"""A version's replicas, decided over all its cells and dealt out to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from modelyard.scaling.queued_plus_ongoing import (
    STALE_AFTER_S,
    YOUNG_UNTIL_S,
    Decision,
    Signal,
    bounded,
    desired,
)
from modelyard.scaling.split import CellSize, split, total_bounds
from modelyard.scaling.unplaced import Unplaced, placeable
from modelyard.scaling.version_signal import VersionSignal

# Two asks of each cell: one to take its part, one to show what Serve made of it.
STANDS_FOR_ASKS: Final = 2
COUNTING: Final = "held: the version's cells are being counted"
GONE_S: Final = 5.0  # a deleted app's policy asks no more, and then its cell counts no more
# Of the time between two asks, which is a tenth of a second: a controller that stood still asked
# for nobody, and no cell is gone for that.
STEP_S: Final = 1.0
NONE_FULL: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CellLoad:
    """What a cell's policy is told by Serve. ongoing, target as in Signal."""

    app: str
    ongoing: float
    target_ongoing_requests: float
    target: int
    min_replicas: int
    max_replicas: int


@dataclass(frozen=True, slots=True)
class BoardView:
    """A version as the board shows it, with the ages as in Signal. there: replicas of each app
    that start or serve; None where the board does not know enough."""

    version: VersionSignal = field(default_factory=VersionSignal)
    age_s: float | None = None
    up_s: float = 0.0
    there: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Deal:
    """What a version needs, the cells that it was dealt out to, and what each got by app."""

    replicas: int = 0
    cells: frozenset[CellSize] = frozenset()
    parts: dict[str, Decision] = field(default_factory=dict)


def deal(
    cells: Sequence[CellLoad], board: BoardView, last: Deal, full: Mapping[str, int] = NONE_FULL
) -> Deal:
    """For a version that is not frozen. Bounds, wishes and the load are the version's: no cell
    alone knows them. full: the replicas of cells in which no more find a place.

    While the version needs as much as before of the same cells, each gets as much as before: what
    is known of some cells is older than of others, and two splits made of such knowledge could
    follow each other for ever.
    """
    sizes: Sequence[CellSize] = [_size(one, board.version) for one in cells]
    whole = bounded(desired(_signal(cells, sizes, board)), *total_bounds(sizes))
    sizes = placeable(sizes, full, whole.replicas)
    among = frozenset(replace(size, running=0) for size in sizes)
    parts = split(whole.replicas, sizes)
    if (whole.replicas, among) == (last.replicas, last.cells):
        parts = tuple(last.parts[size.app].replicas for size in sizes)
    decisions = {
        size.app: Decision(part, _why(size, whole, len(cells)))
        for size, part in zip(sizes, parts, strict=True)
    }
    return Deal(whole.replicas, among, decisions)


def _there(board: BoardView, app: str) -> int | None:
    is_known = board.age_s is not None and board.age_s <= STALE_AFTER_S
    if not is_known or board.up_s < YOUNG_UNTIL_S or board.there is None:
        return None
    return board.there.get(app, 0)


class Dealer:
    """The cells of one version: which ask, and the deal that stands between them."""

    def __init__(self) -> None:
        self._cells: dict[str, tuple[CellLoad, float]] = {}
        self._asks: dict[str, int] = {}
        self._deal = Deal()
        self._unplaced = Unplaced()
        self._asked_at: float | None = None
        self._running_s = 0.0  # while the controller was not still

    def ask(self, cell: CellLoad, board: BoardView, now: float) -> Decision:
        """A cell's part. What it has, until the other cells have asked too, and in a freeze."""
        if self._asked_at is not None:
            self._running_s += min(now - self._asked_at, STEP_S)
        self._asked_at = now
        self._cells[cell.app] = cell, self._running_s
        self._unplaced.look(cell.app, cell.target, _there(board, cell.app), self._running_s)
        if (freeze := board.version.freeze) is not None:
            self._asks, self._deal = {}, Deal()  # it may be old when the freeze ends
            return Decision(cell.target, f"frozen by {freeze.author}")
        self._asks[cell.app] = self._asks.get(cell.app, 0) + 1
        if self._asks[cell.app] > STANDS_FOR_ASKS:
            self._cells = {
                app: (one, at)
                for app, (one, at) in self._cells.items()
                if self._running_s - at <= GONE_S
            }
            cells = [one for one, _ in self._cells.values()]
            self._deal = deal(cells, board, self._deal, self._unplaced.full(self._running_s))
            self._asks = {cell.app: 1}
        return self._deal.parts.get(cell.app) or Decision(cell.target, COUNTING)

    def is_asked(self, now: float) -> bool:
        return self._asked_at is not None and now - self._asked_at <= GONE_S


def _size(cell: CellLoad, version: VersionSignal) -> CellSize:
    """A drained cell keeps its replicas while they have requests, whoever drained it: Serve would
    cut streams that outlast its grace. In a move it keeps them until it is dropped, so that an undo
    finds them. A ceiling of 0 ends that."""
    drains = [one for one in version.drained if one.app == cell.app]
    is_over = version.ceiling is not None and version.ceiling.replicas == 0
    is_held = not is_over and any(one.stays or cell.ongoing > 0 for one in drains)
    bounds = cell.min_replicas, cell.max_replicas
    return CellSize(cell.app, *bounds, cell.target, bool(drains), is_held)


def _signal(cells: Sequence[CellLoad], sizes: Sequence[CellSize], board: BoardView) -> Signal:
    """target: of the cells that take requests, as what is decided. Cells of one version are alike:
    of targets that differ the smallest, which never means too few replicas."""
    return Signal(
        ongoing=sum(max(cell.ongoing, 0.0) for cell in cells),
        target_ongoing_requests=min(cell.target_ongoing_requests for cell in cells),
        target=sum(size.running for size in sizes if not size.drained),
        version=board.version,
        board_age_s=board.age_s,
        board_up_s=board.up_s,
    )


def _why(size: CellSize, whole: Decision, cells: int) -> str:
    if size.held:
        return "drained: held"
    if size.drained:
        return "drained: at min_replicas"
    return whole.why if cells == 1 else f"of {whole.replicas} in {cells} cells: {whole.why}"
