"""Why a placement group waits: Ray says it nowhere, so each reason is told with its figures."""

from __future__ import annotations

import pytest

from placement.pending import NORMAL_S, Pending, Reason, pending
from placement.plan import Cell
from placement.ray_state import Group, RayNode

CELL = Cell("gen@1.0.0", "", ("d0",), 1, 1)
NEED = {"CPU": 1.0, "GPU": 0.6, "gpu_mem": 54.0, "gpu_comp": 60.0}
GROUP = Group("g", "gen@1.0.0", "r1", True, NEED, "")
DEVICE = {"CPU": 8.0, "GPU": 1.0, "gpu_mem": 80.0, "gpu_comp": 100.0}


def node(
    place: str, alive: bool = True, total: dict[str, float] = DEVICE, **free: float
) -> RayNode:
    return RayNode(f"n-{place}", place, alive, total, total | free if alive else {})


def held(app: str, place: str, gpu_mem: float) -> Group:
    return Group(f"g-{app}", app, f"r-{app}", False, {"gpu_mem": gpu_mem}, f"n-{place}")


def why(*nodes: RayNode, groups: tuple[Group, ...] = (), cell: Cell = CELL) -> Pending:
    (one,) = pending((cell,), (GROUP, *groups), nodes, {"r1": 700.0}, {"gen@1.0.0": 600.0})
    return one


def test_the_alarm_names_the_app_its_place_and_for_how_long() -> None:
    one = why(node("d1"))
    assert (one.app, one.replica, one.place, one.waited_s) == ("gen@1.0.0", "r1", "d0", 700.0)
    assert str(one).startswith("ALARM: gen@1.0.0 r1 has waited 700 s for a place: ")


def test_a_place_that_no_alive_node_has_is_a_missing_label() -> None:
    for nodes in ((node("d1"),), (node("d0", alive=False), node("d1"))):
        one = why(*nodes)
        assert one.reason is Reason.MISSING_LABEL
        assert "modelyard/place: d0" in one.words


def test_a_resource_that_no_node_declares_is_named() -> None:
    bare = {"CPU": 8.0, "GPU": 1.0}
    one = why(node("d0", total=bare))
    assert one.reason is Reason.UNDECLARED
    assert one.words == "no node declares gpu_comp, and it needs some at d0"
    elsewhere = why(node("d0", total=bare), node("d1"))
    assert (elsewhere.reason, elsewhere.words) == (Reason.UNDECLARED, "d0 declares no gpu_comp")


def test_a_place_below_the_need_is_too_small_even_while_empty() -> None:
    one = why(node("d0", total=DEVICE | {"gpu_mem": 48.0}))
    assert one.reason is Reason.TOO_SMALL


def test_a_full_place_is_named_with_who_holds_it() -> None:
    one = why(node("d0", gpu_mem=20.0), groups=(held("emb@1.0.0", "d0", 60.0),))
    assert one.reason is Reason.FULL
    assert "needs 54 gpu_mem, and free is: d0 20, held by emb@1.0.0 60" in one.words


def test_free_in_the_sum_and_on_no_one_place_is_fragmentation() -> None:
    one = why(node("d0", gpu_mem=35.0), node("d1", gpu_mem=40.0), node("d2", gpu_mem=22.0))
    assert one.reason is Reason.FRAGMENTATION
    assert "97 gpu_mem are free in all, and no one place has 54" in one.words


def test_a_place_that_has_the_room_is_told() -> None:
    one = why(node("d0", gpu_mem=20.0), node("d1"))
    assert one.reason is Reason.FULL
    assert "d1 has room: plan again" in one.words


def test_a_group_that_fits_by_now_is_no_riddle() -> None:
    assert why(node("d0")).reason is Reason.SOON


def test_a_cell_of_several_places_looks_at_all_of_them() -> None:
    two = Cell("gen@1.0.0", "", ("d0", "d1"), 1, 1)
    assert why(node("d0", gpu_mem=1.0), node("d1"), cell=two).reason is Reason.SOON


@pytest.mark.parametrize(
    ("waited_s", "alarm"), [(NORMAL_S + 1, False), (600.0, False), (601, True)]
)
def test_it_is_an_alarm_past_the_budget(waited_s: float, alarm: bool) -> None:
    (one,) = pending((CELL,), (GROUP,), (), {"r1": waited_s}, {"gen@1.0.0": 600.0})
    assert one.alarm is alarm
    assert str(one).startswith("ALARM") is alarm


def test_a_group_that_is_placed_new_or_of_no_cell_is_not_named() -> None:
    placed = Group("g", "gen@1.0.0", "r1", False, NEED, "n-d0")
    stray = Group("g", "other@1.0.0", "r1", True, NEED, "")
    assert pending((CELL,), (placed, stray), (), {"r1": 700.0}, {}) == ()
    assert pending((CELL,), (GROUP,), (), {"r1": NORMAL_S}, {}) == ()
    assert pending((CELL,), (GROUP,), (), {}, {}) == ()
