"""The plan, Ray's placement groups and what replicas tell of themselves, held against each other.

Pure: `placement.live` reads Ray, the board has the reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum

from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport
from placement.plan import Cell
from placement.ray_state import Group, RayNode
from placement.resources import Resources, devices_of, takes_whole


class Wrong(StrEnum):
    """What can be wrong with a replica or an app, as a metric's label."""

    PLACE = "wrong_place"
    DEVICES = "wrong_devices"
    SIZE = "wrong_size"
    DEVICE_TWICE = "device_twice"
    NO_GROUP = "no_group"
    MISSING = "missing"
    TOO_MANY = "too_many"
    NODE_GONE = "node_gone"
    EXTRA_APP = "extra_app"


@dataclass(frozen=True, slots=True, order=True)
class Mismatch:
    """replica: "" where it is of the whole app."""

    app: str
    replica: str
    kind: Wrong
    words: str

    def __str__(self) -> str:
        return f"{self.app}{f' {self.replica}' if self.replica else ''}: {self.words}"


def compare(
    cells: Sequence[Cell],
    groups: Sequence[Group],
    reports: Sequence[ReplicaReport],
    *,
    nodes: Sequence[RayNode] = (),
    bundles: Mapping[str, Resources] | None = None,
    others: Set[str] = frozenset(),
) -> tuple[Mismatch, ...]:
    """Everything that is not as planned, by app and replica.

    reports: of replicas that are there; those that drain are not counted, but what they hold is
    looked at. Failed ones hold nothing, and are left out. nodes: to know the place of a group, and
    which are gone. bundles: what a replica of each app takes, as the config says. others: apps that
    have no place and need none.
    """
    by_app = {cell.app: cell for cell in cells}
    reports = [report for report in reports if report.phase is not Phase.FAILED]
    place_of = {node.id: node.place for node in nodes}
    gone = {node.id for node in nodes if not node.alive}
    group_of = {group.replica: group for group in groups}
    found: list[Mismatch] = []
    for report in reports:
        cell = by_app.get(report.app)
        if cell is not None:
            lost = report.node in gone
            group = group_of.get(report.replica)
            found += [_lost(report)] if lost else _replica(cell, report, group)
    for group in groups:
        cell = by_app.get(group.app)
        if cell is not None:
            found += _group(cell, group, place_of, (bundles or {}).get(group.app))
    found += _devices(reports, group_of)
    found += _counts(cells, reports)
    known = by_app.keys() | others
    running = {group.app for group in groups} | {report.app for report in reports}
    for app in sorted(running - known):
        words = "runs, and no cell of the config is named so: deploy the config again"
        found.append(Mismatch(app, "", Wrong.EXTRA_APP, words))
    return tuple(sorted(set(found)))


def _lost(report: ReplicaReport) -> Mismatch:
    """All else that could be said of it follows from that."""
    words = f"its node {report.place or report.node} is gone, and Serve starts another replica"
    return Mismatch(report.app, report.replica, Wrong.NODE_GONE, words)


def _replica(cell: Cell, report: ReplicaReport, group: Group | None) -> Iterator[Mismatch]:
    def wrong(kind: Wrong, words: str) -> Mismatch:
        return Mismatch(cell.app, report.replica, kind, words)

    if report.place not in cell.places:
        at = f"is at {report.place}" if report.place else "its node has no label modelyard/place"
        yield wrong(Wrong.PLACE, f"{at}, planned for {_either(cell.places)}")
    if group is None or report.placement_group != group.id:
        held = report.placement_group or "none"
        yield wrong(Wrong.NO_GROUP, f"runs in the placement group {held}, which is not its own")
    elif (devices := devices_of(group.bundle)) != len(report.gpu_ids):
        sees = f"{len(report.gpu_ids)} ({', '.join(report.gpu_ids)})" if report.gpu_ids else "none"
        yield wrong(Wrong.DEVICES, f"sees {sees} of the {devices} devices that it was given")


def _group(
    cell: Cell, group: Group, place_of: Mapping[str, str], planned: Resources | None
) -> Iterator[Mismatch]:
    place = place_of.get(group.node)
    if group.node and place is not None and place not in cell.places:
        words = f"its placement group is at {place or 'a node without a place'}, planned for "
        yield Mismatch(cell.app, group.replica, Wrong.PLACE, words + _either(cell.places))
    if planned is not None and not _same(group.bundle, planned):
        words = f"its placement group holds {_amounts(group.bundle)}, planned {_amounts(planned)}"
        yield Mismatch(cell.app, group.replica, Wrong.SIZE, words)


def _devices(reports: Sequence[ReplicaReport], group_of: Mapping[str, Group]) -> Iterator[Mismatch]:
    """A device that was given out whole, and that somebody else sees too."""
    holders: dict[tuple[str, str], list[ReplicaReport]] = {}
    for report in reports:
        for gpu in report.gpu_ids:
            holders.setdefault((report.node, gpu), []).append(report)
    for (_, gpu), held in sorted(holders.items()):
        whole = [one for one in held if _is_whole(one, group_of)]
        for one in whole if len(held) > 1 else ():
            rest = ", ".join(f"{o.app} {o.replica}" for o in held if o.replica != one.replica)
            words = f"its device {gpu} at {one.place or one.node} is seen by {rest} too"
            yield Mismatch(one.app, one.replica, Wrong.DEVICE_TWICE, words)


def _is_whole(report: ReplicaReport, group_of: Mapping[str, Group]) -> bool:
    group = group_of.get(report.replica)
    return group is not None and takes_whole(group.bundle)


def _counts(cells: Sequence[Cell], reports: Sequence[ReplicaReport]) -> Iterator[Mismatch]:
    there = Counter(one.app for one in reports if one.phase is not Phase.DRAINING)
    for cell in cells:
        count = there[cell.app]
        if count < cell.min_replicas:
            words = f"{count} replicas, and at least {cell.min_replicas} are planned"
            yield Mismatch(cell.app, "", Wrong.MISSING, words)
        elif count > cell.replicas:
            words = f"{count} replicas, and at most {cell.replicas} are planned"
            yield Mismatch(cell.app, "", Wrong.TOO_MANY, words)


def _same(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    names = one.keys() | other.keys()
    return all(abs(one.get(name, 0.0) - other.get(name, 0.0)) < 0.001 for name in names)


def _either(places: Sequence[str]) -> str:
    return " or ".join(places)


def _amounts(resources: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {amount:g}" for name, amount in sorted(resources.items()))
