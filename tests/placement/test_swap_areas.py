"""Swappable models share one place, as large as the largest of them."""

import pytest

from placement.planned import make_plan
from placement.swap_areas import PREFIX, Area, area_name
from tests.placement.fleets import fleet, memory_of, model, replicas, shared

SWAPPABLE = {"swappable": True, "scaling": replicas(1, 0)}


def test_an_area_is_as_large_as_its_largest_member() -> None:
    models = {"s": model(20, **SWAPPABLE), "l": model(54, **SWAPPABLE), "own": model(20)}
    spec = fleet({"gpu": shared()}, models)
    plan = make_plan(spec, memory_of(spec))
    (area,) = plan.swap_areas.values()
    assert area.memory_gb == 54
    assert area.models == {"l@1": 54, "s@1": 20}
    assert {(p.item, p.replicas) for p in plan.packing.placed} == {("swap:gpu", 1), ("own@1", 1)}
    assert [(cell.app, cell.places, cell.min_replicas) for cell in plan.cells] == [
        ("l@1", ("gpu-0-d0",), 0),
        ("own@1", ("gpu-0-d0",), 1),
        ("s@1", ("gpu-0-d0",), 0),
    ]


def test_models_of_other_pools_have_an_area_of_their_own() -> None:
    pools = {"gpu": shared(), "more": shared()}
    models = {"x": model(20, **SWAPPABLE), "y": model(54, "more", **SWAPPABLE)}
    spec = fleet(pools, models)
    plan = make_plan(spec, memory_of(spec))
    assert {name: set(area.models) for name, area in plan.swap_areas.items()} == {
        "gpu": {"x@1"},
        "more": {"y@1"},
    }


def test_whole_devices_are_told_in_gb() -> None:
    pool = {"nodes": 1, "accelerator": "H100", "devices": 2, "memory_gb": 80}
    models = {"x": model(90, tensor_parallel_size=2, **SWAPPABLE), "y": model(20, **SWAPPABLE)}
    spec = fleet({"gpu": pool}, models)
    (area,) = make_plan(spec, memory_of(spec)).swap_areas.values()
    assert (area.memory_gb, area.models) == (160, {"x@1": 160, "y@1": 80})


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        ([(30, 4), (20, 5), (10, 6)], (30, 11)),  # the two small ones together
        ([(30, 12), (20, 5), (10, 6)], (30, 12)),
        ([(30, 4)], (30, 4)),
    ],
)
def test_compute_is_for_the_members_that_are_loaded_at_once(
    needs: list[tuple[int, int]], expected: tuple[int, int]
) -> None:
    members = {f"m{index}@1": {"gpu": need} for index, need in enumerate(needs)}
    item = Area("gpu", members, priority=3).item
    assert (item.name, item.needs["gpu"], item.priority) == (f"{PREFIX}gpu", expected, 3)


def test_a_long_name_is_cut_to_the_length_of_a_label() -> None:
    pools = [f"pool-with-a-long-name-{index}" for index in range(9)]
    assert area_name(pools) == area_name(pools[::-1])
    assert len(area_name(pools)) == 63
    assert area_name(pools) != area_name(pools[1:])
