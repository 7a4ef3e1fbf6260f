"""What is used and what is free at each place, and what of it is of no use to anybody."""

from __future__ import annotations

from dataclasses import dataclass

from placement.problem import Packing, Place, Placed, Problem, Vector


@dataclass(frozen=True, slots=True)
class Free:
    """One place. held: in the order of items. stranded: all that is free, where not one replica of
    any item of the fleet would fit into it; else nothing."""

    place: Place
    held: tuple[Placed, ...]
    used: Vector
    free: Vector
    stranded: Vector


def free_of(problem: Problem, packing: Packing) -> tuple[Free, ...]:
    """In the order of places."""
    held: dict[str, list[Placed]] = {place.name: [] for place in problem.places}
    for placed in packing.placed:
        held[placed.place].append(placed)
    return tuple(_free(problem, place, held[place.name]) for place in problem.places)


def room_text(amount: int, place: Place) -> str:
    """Of the first of a place's two sizes: whole devices, or memory."""
    if place.devices > 0 and place.size[1] == 0:
        return f"{amount} {'device' if amount == 1 else 'devices'}"
    return f"{amount / 1000:g} GB"


def _free(problem: Problem, place: Place, held: list[Placed]) -> Free:
    used = [0, 0]
    for placed in held:
        taken = problem.item[placed.item].needs[place.pool]
        used[0] += taken[0] * placed.replicas
        used[1] += taken[1] * placed.replicas
    free = (place.size[0] - used[0], place.size[1] - used[1])
    useful = any(
        need[0] <= free[0] and need[1] <= free[1]
        for item in problem.items
        if (need := item.need_at(place)) is not None
    )
    return Free(place, tuple(held), (used[0], used[1]), free, (0, 0) if useful else free)
