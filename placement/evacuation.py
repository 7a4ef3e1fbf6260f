"""The routine pass of a defragmentation: empty the place that holds least, if all of it fits
elsewhere, and again.

A place that is emptied in part frees nothing, so it is all or nothing. Quick, and soon stuck: the
exchanges of placement.neighbourhood go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from placement.move import Move
from placement.occupancy import Occupancy
from placement.problem import Item, Packing, Place, Problem

PER_DEVICE: Final = 2.0  # moves that one freed device is worth


def devices_of(place: Place) -> int:
    """What a freed place counts; a machine without accelerators is one."""
    return max(place.devices, 1)


def evacuate(
    problem: Problem,
    packing: Packing,
    max_moves: int,
    pinned: frozenset[tuple[str, str]] = frozenset(),
    per_device: float = PER_DEVICE,
) -> list[Move]:
    """In an order in which they can be made. pinned: (item, place) that stay.

    per_device: at most so many moves for each device that they free.
    """
    now = Occupancy(problem, packing)
    fixed = {place for _, place in pinned}
    moves: list[Move] = []
    open_ = {name: problem.place[name] for name in sorted(packing.used)}
    # Once is enough: what did not fit elsewhere will not fit when less room is left.
    for place in sorted((one for one in open_.values() if one.name not in fixed), key=_least(now)):
        count = sum(now.at(place.name).values())
        if count > min(max_moves - len(moves), per_device * devices_of(place)):
            continue
        del open_[place.name]
        found = _empty(problem, now, place, open_.values(), pinned)
        moves += found
        if not found:
            open_[place.name] = place
    return moves


def _least(now: Occupancy) -> Callable[[Place], tuple[float, float, str]]:
    def key(place: Place) -> tuple[float, float, str]:
        """Fewest moves for each device, then least held, then by name."""
        count = sum(now.at(place.name).values()) / devices_of(place)
        used = (place.size[0] - now.free(place.name)[0]) / max(place.size[0], 1)
        return count, used, place.name

    return key


def _empty(
    problem: Problem,
    now: Occupancy,
    place: Place,
    others: Iterable[Place],
    pinned: frozenset[tuple[str, str]],
) -> list[Move]:
    """Every replica to one of the others, or nothing at all."""
    moves: list[Move] = []
    held = [(problem.item[name], count) for name, count in now.at(place.name).items()]
    for item in _largest_first(held, place):
        target = _best_fit(item, place, now, others, pinned)
        if target is None:
            for move in reversed(moves):
                moved = problem.item[move.item]
                now.take(moved, problem.place[move.target])
                now.put(moved, place)
            return []
        now.move(item, place, target)
        moves.append(Move(item.name, place.name, target.name, 1))
    return moves


def _largest_first(held: list[tuple[Item, int]], place: Place) -> list[Item]:
    ordered = sorted(held, key=lambda one: (-_share(one[0], place), one[0].name))
    return [item for item, count in ordered for _ in range(count)]


def _share(item: Item, place: Place) -> float:
    need = item.need_at(place)
    assert need is not None, "it is there"
    return max(part / whole for part, whole in zip(need, place.size, strict=True) if whole)


def _best_fit(
    item: Item,
    source: Place,
    now: Occupancy,
    others: Iterable[Place],
    pinned: frozenset[tuple[str, str]],
) -> Place | None:
    """Where the least is left, of those where it may be once it has left its source."""
    now.take(item, source)
    fits = [
        one for one in others if now.room_for(item, one) and (item.name, one.name) not in pinned
    ]
    now.put(item, source)
    return min(fits, key=lambda one: (_left(item, one, now), one.name), default=None)


def _left(item: Item, place: Place, now: Occupancy) -> float:
    need, free = item.need_at(place), now.free(place.name)
    assert need is not None, "there is room for it"
    return sum(
        (have - want) / whole
        for have, want, whole in zip(free, need, place.size, strict=True)
        if whole
    )
