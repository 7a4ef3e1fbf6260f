"""Replicas dealt out to cells: bounds, order, and as few changes as possible."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelyard.scaling.split import CellSize, fill_order, split, total_bounds

NAMES = ("", "--b", "--c", "--z", "--aa")


def cells(*sizes: tuple[int, int, int]) -> list[CellSize]:
    """(min, max, running) of each cell in fill order."""
    return [
        CellSize(f"gen@1{name}", *size)
        for name, size in zip(NAMES[: len(sizes)], sizes, strict=True)
    ]


def follow(made: list[CellSize], sizes: tuple[int, ...]) -> list[CellSize]:
    return [replace(cell, running=size) for cell, size in zip(made, sizes, strict=True)]


@st.composite
def any_cells(draw: st.DrawFn) -> list[CellSize]:
    made = []
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, unique=True)):
        least, more = draw(st.integers(0, 4)), draw(st.integers(0, 6))
        running = draw(st.integers(0, 12))
        made.append(CellSize(f"gen@1{name}", least, least + more, running, draw(st.booleans())))
    return made


DESIRED = st.integers(0, 40)


def test_cells_fill_in_the_order_of_their_names() -> None:
    apps = ["gen@1--aa", "gen@1--c", "gen@1", "gen@1--b"]
    assert sorted(apps, key=fill_order) == ["gen@1", "gen@1--b", "gen@1--c", "gen@1--aa"]


@pytest.mark.parametrize(
    ("desired", "expected"),
    [(0, (0, 0, 0)), (3, (3, 0, 0)), (5, (4, 1, 0)), (9, (4, 4, 1)), (50, (4, 4, 4))],
)
def test_the_first_cell_is_filled_before_the_second(
    desired: int, expected: tuple[int, ...]
) -> None:
    assert split(desired, cells((0, 4, 0), (0, 4, 0), (0, 4, 0))) == expected


def test_what_runs_in_a_later_cell_stays_there() -> None:
    assert split(3, cells((0, 4, 0), (0, 4, 3))) == (0, 3)
    assert split(4, cells((0, 4, 0), (0, 4, 3))) == (1, 3)
    assert split(3, cells((0, 4, 3), (0, 4, 3))) == (3, 0)


def test_a_drained_cell_keeps_its_minimum_and_the_others_do_its_work() -> None:
    old, new = cells((1, 4, 4), (0, 4, 0))
    assert split(4, [replace(old, drained=True), new]) == (1, 4)


def test_where_every_cell_is_drained_each_has_its_minimum() -> None:
    made = [replace(cell, drained=True) for cell in cells((1, 4, 4), (0, 4, 2))]
    assert split(5, made) == (1, 0)


def test_a_drained_cell_that_is_held_keeps_what_it_has_beside_the_others() -> None:
    old, new = cells((1, 4, 3), (0, 4, 0))
    held = replace(old, drained=True, held=True)
    assert split(4, [held, new]) == (3, 4)
    assert split(0, [held, new]) == (3, 0)


@settings(max_examples=60)
@given(made=any_cells(), desired=DESIRED)
def test_cells_that_take_requests_get_all_of_it_within_their_bounds(
    made: list[CellSize], desired: int
) -> None:
    sizes = split(desired, made)
    least, most = total_bounds(made)
    for cell, size in zip(made, sizes, strict=True):
        assert size == cell.min if cell.drained else cell.min <= size <= cell.max
    taking = sum(size for cell, size in zip(made, sizes, strict=True) if not cell.drained)
    assert taking == max(least, min(most, desired))


@settings(max_examples=60)
@given(made=any_cells(), desired=DESIRED)
def test_no_replica_is_added_in_one_cell_and_removed_in_another(
    made: list[CellSize], desired: int
) -> None:
    changes = [
        size - max(cell.min, min(cell.max, cell.running))
        for cell, size in zip(made, split(desired, made), strict=True)
        if not cell.drained
    ]
    assert abs(sum(changes)) == sum(map(abs, changes))


@settings(max_examples=60)
@given(made=any_cells(), desired=DESIRED, data=st.data())
def test_a_split_that_was_followed_in_part_is_made_again(
    made: list[CellSize], desired: int, data: st.DataObject
) -> None:
    sizes = split(desired, made)
    part = tuple(
        data.draw(st.integers(min(cell.running, size), max(cell.running, size)))
        for cell, size in zip(made, sizes, strict=True)
    )
    assert split(desired, follow(made, part)) == sizes


@settings(max_examples=60)
@given(made=any_cells(), desired=DESIRED)
def test_more_desired_takes_from_no_cell(made: list[CellSize], desired: int) -> None:
    fewer, more = split(desired, made), split(desired + 1, made)
    assert all(one <= other for one, other in zip(fewer, more, strict=True))
    assert sum(more) - sum(fewer) <= 1


@settings(max_examples=60)
@given(made=any_cells(), desired=DESIRED, data=st.data())
def test_the_order_in_which_cells_are_given_means_nothing(
    made: list[CellSize], desired: int, data: st.DataObject
) -> None:
    mixed = data.draw(st.permutations(made))
    sizes = {cell.app: size for cell, size in zip(made, split(desired, made), strict=True)}
    again = {cell.app: size for cell, size in zip(mixed, split(desired, mixed), strict=True)}
    assert again == sizes
