"""Each way in which what runs is not as planned is named, and nothing is said where all is well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from modelyard.lifecycle.phases import Phase
from modelyard.lifecycle.report import ReplicaReport
from placement.plan import Cell
from placement.ray_state import Group, RayNode
from placement.verify import Mismatch, Wrong, compare

SHARED = {"CPU": 1.0, "GPU": 0.4, "gpu_mem": 9.0, "gpu_comp": 40.0}
WHOLE = {"CPU": 1.0, "GPU": 2.0}
ON_CPU = {"CPU": 0.5, "memory": 1e9}
CELLS = (
    Cell("big@1.0.0", "", ("box-0",), 1, 1),
    Cell("emb@1.0.0", "", ("cpu-0",), 2, 1),
    Cell("gen@1.0.0", "", ("dev-0",), 2, 1),
    Cell("gen@1.0.0", "b", ("dev-1",), 1, 0),
)
BUNDLES = {"big@1.0.0": WHOLE, "emb@1.0.0": ON_CPU, "gen@1.0.0": SHARED, "gen@1.0.0--b": SHARED}
NODES = tuple(
    RayNode(f"n-{place}", place, True, {}) for place in ("box-0", "cpu-0", "dev-0", "dev-1", "")
)


def group(app: str, replica: str, place: str, **changes: Any) -> Group:
    return replace(
        Group(f"g-{replica}", app, replica, False, BUNDLES[app], f"n-{place}"), **changes
    )


def report(app: str, replica: str, place: str, *gpus: str, **changes: Any) -> ReplicaReport:
    made = ReplicaReport(
        *(app, replica, f"n-{place}", 1, Phase.READY, 1.0),
        place=place,
        gpu_ids=gpus,
        placement_group=f"g-{replica}",
    )
    return replace(made, **changes)


GROUPS = (
    group("big@1.0.0", "r1", "box-0"),
    group("emb@1.0.0", "r2", "cpu-0"),
    group("gen@1.0.0", "r3", "dev-0"),
    group("gen@1.0.0", "r4", "dev-0"),
)
REPORTS = (
    report("big@1.0.0", "r1", "box-0", "0", "1"),
    report("emb@1.0.0", "r2", "cpu-0"),
    report("gen@1.0.0", "r3", "dev-0", "0"),
    report("gen@1.0.0", "r4", "dev-0", "0"),
)


def found(groups: tuple[Group, ...], reports: tuple[ReplicaReport, ...]) -> list[Mismatch]:
    return list(compare(CELLS, groups, reports, nodes=NODES, bundles=BUNDLES))


def kinds(groups: tuple[Group, ...], reports: tuple[ReplicaReport, ...]) -> list[tuple[str, Wrong]]:
    return [(one.replica or one.app, one.kind) for one in found(groups, reports)]


def with_report(index: int, **changes: Any) -> tuple[ReplicaReport, ...]:
    changed = list(REPORTS)
    changed[index] = replace(changed[index], **changes)
    return tuple(changed)


def test_nothing_is_said_of_what_is_as_planned() -> None:
    assert found(GROUPS, REPORTS) == []


@pytest.mark.parametrize("place", ["dev-1", ""])
def test_a_replica_at_another_place_is_named_with_both(place: str) -> None:
    (one,) = found(GROUPS, with_report(2, place=place))
    assert (one.app, one.replica, one.kind) == ("gen@1.0.0", "r3", Wrong.PLACE)
    assert "planned for dev-0" in str(one)


def test_a_group_at_another_place_counts_before_its_replica_speaks() -> None:
    groups = (*GROUPS[:3], group("gen@1.0.0", "r4", "dev-1"))
    assert kinds(groups, REPORTS[:3]) == [("r4", Wrong.PLACE)]


@pytest.mark.parametrize("gpus", [("0",), (), ("0", "1", "2")])
def test_a_replica_with_another_number_of_devices_is_named(gpus: tuple[str, ...]) -> None:
    assert kinds(GROUPS, with_report(0, gpu_ids=gpus)) == [("r1", Wrong.DEVICES)]


def test_two_replicas_on_one_whole_device_are_both_named() -> None:
    cells = (Cell("big@1.0.0", "", ("box-0",), 2, 1),)
    groups = (GROUPS[0], group("big@1.0.0", "r5", "box-0"))
    reports = (REPORTS[0], report("big@1.0.0", "r5", "box-0", "1", "2"))
    one, other = compare(cells, groups, reports)
    assert (one.replica, one.kind, other.replica) == ("r1", Wrong.DEVICE_TWICE, "r5")
    assert "device 1 at box-0 is seen by big@1.0.0 r5 too" in one.words


def test_the_same_number_at_another_machine_is_another_device() -> None:
    cells = (*CELLS, Cell("big@1.0.0", "b", ("box-1",), 1, 1))
    groups = (*GROUPS, Group("g-r5", "big@1.0.0--b", "r5", False, WHOLE, "n-box-1"))
    reports = (*REPORTS, report("big@1.0.0--b", "r5", "box-1", "0", "1"))
    assert compare(cells, groups, reports) == ()


def test_a_drained_replica_still_holds_its_device() -> None:
    cells = (Cell("big@1.0.0", "", ("box-0",), 1, 1),)
    groups = (GROUPS[0], group("big@1.0.0", "r5", "box-0"))
    left = report("big@1.0.0", "r5", "box-0", "1", "2", phase=Phase.DRAINING)
    assert {one.kind for one in compare(cells, groups, (REPORTS[0], left))} == {Wrong.DEVICE_TWICE}


def test_a_replica_without_a_group_or_in_anothers_is_named() -> None:
    assert kinds(GROUPS, with_report(1, placement_group="")) == [("r2", Wrong.NO_GROUP)]
    assert kinds(GROUPS, with_report(1, placement_group="g-r1")) == [("r2", Wrong.NO_GROUP)]
    assert ("r2", Wrong.NO_GROUP) in kinds((GROUPS[0], *GROUPS[2:]), REPORTS)


def test_a_group_of_another_size_is_named_with_both() -> None:
    smaller = SHARED | {"gpu_mem": 6.0}
    groups = (*GROUPS[:3], group("gen@1.0.0", "r4", "dev-0", bundle=smaller))
    (one,) = found(groups, REPORTS)
    assert one.kind is Wrong.SIZE
    assert "gpu_mem 6" in one.words
    assert "gpu_mem 9" in one.words


def test_missing_and_surplus_replicas_are_counted_by_cell() -> None:
    assert kinds(GROUPS, REPORTS[1:]) == [("big@1.0.0", Wrong.MISSING)]
    more = tuple(report("gen@1.0.0", f"x{n}", "dev-0", "0") for n in range(1))
    groups = (*GROUPS, *(group("gen@1.0.0", one.replica, "dev-0") for one in more))
    assert kinds(groups, (*REPORTS, *more)) == [("gen@1.0.0", Wrong.TOO_MANY)]


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.FAILED])
def test_what_leaves_is_not_counted(phase: Phase) -> None:
    assert kinds(GROUPS, with_report(0, phase=phase)) == [("big@1.0.0", Wrong.MISSING)]


def test_what_failed_holds_nothing_that_its_replacement_lacks() -> None:
    failed = report("big@1.0.0", "r0", "box-0", "0", "1", phase=Phase.FAILED)
    assert found(GROUPS, (*REPORTS, failed)) == []


def test_a_replica_whose_node_is_gone_is_told_as_that_alone() -> None:
    nodes = tuple(replace(node, alive=node.place != "box-0") for node in NODES)
    (one,) = compare(CELLS, GROUPS[1:], REPORTS, nodes=nodes, bundles=BUNDLES)
    assert (one.replica, one.kind) == ("r1", Wrong.NODE_GONE)
    assert "its node box-0 is gone" in str(one)


def test_an_app_that_no_cell_has_is_named_once_unless_it_needs_no_place() -> None:
    stray = report("old@1.0.0", "r9", "dev-1", "0")
    held = Group("g-r9", "old@1.0.0", "r9", False, SHARED, "n-dev-1")
    (one,) = found((*GROUPS, held), (*REPORTS, stray))
    assert (one.app, one.kind) == ("old@1.0.0", Wrong.EXTRA_APP)
    known = frozenset({"old@1.0.0"})
    assert compare(CELLS, (*GROUPS, held), (*REPORTS, stray), others=known) == ()
