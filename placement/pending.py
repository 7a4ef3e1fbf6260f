"""Why a replica finds no place. Ray says nothing: its placement group waits, maybe for ever."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from placement.plan import Cell
from placement.ray_state import Group, RayNode
from placement.resources import LABEL

# A group that fits is there within a second or two; before, nothing is said of it.
NORMAL_S: Final = 5.0
_SLACK: Final = 1e-4  # Ray counts in ten thousandths


class Reason(StrEnum):
    """As a metric's label."""

    MISSING_LABEL = "missing_label"
    UNDECLARED = "undeclared_resource"
    TOO_SMALL = "too_small"
    FRAGMENTATION = "fragmentation"
    FULL = "full"
    SOON = "soon"


@dataclass(frozen=True, slots=True, order=True)
class Pending:
    """A group that waits. place: where it should go. waited_s: since Serve asked for the replica.
    alarm: whether that is past its budget."""

    app: str
    replica: str
    place: str
    reason: Reason
    words: str
    waited_s: float
    alarm: bool

    def __str__(self) -> str:
        head = "ALARM: " if self.alarm else ""
        waits = f"has waited {self.waited_s:.0f} s for a place"
        return f"{head}{self.app} {self.replica} {waits}: {self.words}"


def pending(
    cells: Sequence[Cell],
    groups: Sequence[Group],
    nodes: Sequence[RayNode],
    waited_s: Mapping[str, float],
    budgets_s: Mapping[str, float],
) -> tuple[Pending, ...]:
    """Groups that wait for longer than one does that fits.

    waited_s: by replica, since Serve asked for it. budgets_s: by app, its scheduled_s.
    """
    by_app = {cell.app: cell for cell in cells}
    found = []
    for group in groups:
        cell, waited = by_app.get(group.app), waited_s.get(group.replica, 0.0)
        if not group.waits or cell is None or waited <= NORMAL_S:
            continue
        reason, words = _why(cell, group, groups, nodes)
        alarm = waited > budgets_s.get(group.app, 0.0)
        place = ",".join(cell.places)
        found.append(Pending(group.app, group.replica, place, reason, words, waited, alarm))
    return tuple(sorted(found))


def _why(
    cell: Cell, group: Group, groups: Sequence[Group], nodes: Sequence[RayNode]
) -> tuple[Reason, str]:
    where = " or ".join(cell.places)
    alive = [node for node in nodes if node.alive]
    there = [node for node in alive if node.place in cell.places]
    if not there:
        return Reason.MISSING_LABEL, (
            f"no alive node has the label {LABEL}: {where}; if it is lost, `modelyard plan ... "
            f"--lost {cell.places[0]}` places anew what it held"
        )
    for name in sorted(group.bundle):
        if not any(name in node.total for node in alive):
            return Reason.UNDECLARED, f"no node declares {name}, and it needs some at {where}"
        if not any(name in node.total for node in there):
            return Reason.UNDECLARED, f"{where} declares no {name}"
    if not any(_fits(group.bundle, node.total) for node in there):
        return Reason.TOO_SMALL, f"{where} is smaller than the {_amounts(group.bundle)} it needs"
    fitting = [node for node in there if _fits(group.bundle, node.free)]
    if fitting:
        return Reason.SOON, f"{fitting[0].place} has room now: Ray should place it in seconds"
    if any(_fits(group.bundle, node.free) for node in alive):
        return Reason.FULL, _full(group, there, groups, alive)
    if _fits(group.bundle, _sum(alive)):
        lack = _lack(group, there)
        free = sum(node.free.get(lack, 0.0) for node in alive)
        return Reason.FRAGMENTATION, (
            f"{_full(group, there, groups, alive)}; {free:g} {lack} are free in all, and no one "
            f"place has {group.bundle[lack]:g}: plan again, with --defrag"
        )
    return Reason.FULL, _full(group, there, groups, alive)


def _full(
    group: Group, there: Sequence[RayNode], groups: Sequence[Group], alive: Sequence[RayNode]
) -> str:
    """What is lacking where, and who has it."""
    lack = _lack(group, there)
    ids = {node.id for node in there}
    holders = [
        f"{one.app} {one.bundle[lack]:g}"
        for one in groups
        if one.node in ids and one.bundle.get(lack)
    ]
    free = ", ".join(f"{node.place} {node.free.get(lack, 0.0):g}" for node in there)
    by = f", held by {', '.join(holders)}" if holders else ""
    other = next((n.place for n in alive if n.place and _fits(group.bundle, n.free)), None)
    elsewhere = f"; {other} has room: plan again" if other is not None else ""
    return f"needs {group.bundle[lack]:g} {lack}, and free is: {free}{by}{elsewhere}"


def _lack(group: Group, there: Sequence[RayNode]) -> str:
    """The resource of which the most is missing, as a share of what is needed."""

    def missing(name: str) -> float:
        best = max(node.free.get(name, 0.0) for node in there)
        return 1.0 - best / group.bundle[name]

    return max(sorted(group.bundle), key=missing)


def _fits(bundle: Mapping[str, float], free: Mapping[str, float]) -> bool:
    return all(free.get(name, 0.0) + _SLACK >= amount for name, amount in bundle.items())


def _sum(nodes: Sequence[RayNode]) -> dict[str, float]:
    names = {name for node in nodes for name in node.free}
    return {name: sum(node.free.get(name, 0.0) for node in nodes) for name in names}


def _amounts(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{amount:g} {name}" for name, amount in sorted(resources.items()))
