"""How many replicas each cell of a version gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CellSize:
    """A cell as scaling sees it. running: its replicas, starting ones too. drained: it gets no new
    requests. held: it is drained, and keeps what it has."""

    app: str
    min: int
    max: int
    running: int
    drained: bool = False
    held: bool = False


def fill_order(app: str) -> tuple[int, str]:
    """A key that sorts a version's apps as they are filled: "", "b", ... "z", "aa"."""
    cell = app.partition("--")[2]
    return len(cell), cell


def total_bounds(cells: Sequence[CellSize]) -> tuple[int, int]:
    """The least and the most that cells which take requests have together."""
    taking = [cell for cell in cells if not cell.drained]
    return sum(cell.min for cell in taking), sum(max(cell.min, cell.max) for cell in taking)


def split(desired: int, cells: Sequence[CellSize]) -> tuple[int, ...]:
    """The replicas of each cell, in the order given.

    Cells that take requests get `desired` together, each within its bounds: what runs is kept, more
    is added in fill order, and what is too much goes from the last. So as few replicas as possible
    change hands, and a split that was followed in part is made again (an even split would move some
    each time that `desired` changes). A drained cell has its minimum, or what it has where it
    is held; that is not counted, since it serves nobody new.
    """
    sizes = {cell.app: _kept(cell) for cell in cells}
    taking = sorted((one for one in cells if not one.drained), key=lambda one: fill_order(one.app))
    least, most = total_bounds(cells)
    missing = min(max(desired, least), most) - sum(sizes[cell.app] for cell in taking)
    for cell in taking:
        added = min(max(missing, 0), max(cell.min, cell.max) - sizes[cell.app])
        sizes[cell.app] += added
        missing -= added
    for cell in reversed(taking):
        removed = min(max(-missing, 0), sizes[cell.app] - cell.min)
        sizes[cell.app] -= removed
        missing += removed
    return tuple(sizes[cell.app] for cell in cells)


def _kept(cell: CellSize) -> int:
    return (
        cell.min if cell.drained and not cell.held else max(cell.min, min(cell.max, cell.running))
    )
