"""A problem with equal things counted, not listed.

Ten thousand replicas are a few hundred types, and a thousand places a few kinds: every method here
works on the counts, so its time does not grow with the number of copies.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from placement.problem import Item, Place, Problem, Vector
from placement.zone_shares import Part, parts_of

Pattern = tuple[tuple[int, int], ...]
"""What one place holds: (type, replicas), by type."""


NO_LIMIT = 1 << 40
"""More than there can be of anything; a thousand of them still fit in 64 bits."""


class Kind(NamedTuple):
    """Places that no item tells apart; supply: how many there are."""

    pool: str
    size: Vector
    price: int
    supply: int


class Type(NamedTuple):
    """Replicas that no place tells apart.

    needs: by kind, None where it may not be or does not fit. most: of them on one place.
    """

    needs: tuple[Vector | None, ...]
    most: int
    replicas: int


class Filled(NamedTuple):
    """So many places of a kind, filled alike."""

    kind: int
    pattern: Pattern
    places: int


@dataclass(frozen=True)
class Grouped:
    """kinds, types: what the methods see. places: of each kind. parts: of each type."""

    kinds: tuple[Kind, ...]
    types: tuple[Type, ...]
    places: tuple[tuple[Place, ...], ...]
    parts: tuple[tuple[Part, ...], ...]
    nowhere: tuple[tuple[str, int], ...]


def grouped(problem: Problem, *, by_zone: bool) -> Grouped:
    """by_zone: items with a cap per zone are dealt out to the zones first (see `zone_shares`);
    without it the caps per zone are left out, as a bound may."""
    alike: dict[tuple[str, str, Vector, int], list[Place]] = defaultdict(list)
    for place in problem.places:
        alike[place.pool, place.zone, place.size, place.price].append(place)
    for own in alike.values():
        own.sort(key=attrgetter("host", "name"))
    keys = sorted(alike)
    models = [alike[key][0] for key in keys]
    supply = [len(alike[key]) for key in keys]
    families = _families(problem, models, supply, by_zone=by_zone)
    nowhere = tuple(
        (part.item, part.replicas)
        for key, parts in families.items()
        if not any(key[0])
        for part in parts
    )
    rows = sorted((key for key in families if any(key[0])), key=_order)
    columns: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, model in enumerate(models):
        fit = tuple(row[0][index] for row in rows)
        columns[model.pool, model.size, model.price, fit].append(index)
    merged = list(columns.values())
    places = tuple(
        tuple(place for index in indices for place in alike[keys[index]]) for indices in merged
    )
    return Grouped(
        kinds=tuple(Kind(own[0].pool, own[0].size, own[0].price, len(own)) for own in places),
        types=tuple(
            Type(
                tuple(row[0][indices[0]] for indices in merged),
                row[1],
                sum(part.replicas for part in families[row]),
            )
            for row in rows
        ),
        places=places,
        parts=tuple(tuple(families[row]) for row in rows),
        nowhere=nowhere,
    )


_Row = tuple[tuple[Vector | None, ...], int, str]


def _families(
    problem: Problem, models: list[Place], supply: list[int], *, by_zone: bool
) -> dict[_Row, list[Part]]:
    """Parts that fit alike. One with a cap per host stays alone: the cap is its own."""
    families: dict[_Row, list[Part]] = defaultdict(list)
    for item in sorted(problem.items, key=lambda item: item.name):
        if item.replicas <= 0:
            continue
        needs = tuple(
            need if (need := item.need_at(model)) and _within(need, model.size) else None
            for model in models
        )
        zones = [model.zone for model in models]
        room = [
            count * _copies(item, need, model)
            for count, need, model in zip(supply, needs, models, strict=True)
        ]
        for part in parts_of(item, needs, zones, room, by_zone=by_zone):
            most = part.replicas if item.per_host is None else min(item.per_host, part.replicas)
            alone = "" if item.per_host is None else item.name
            # Equal uncapped parts are one type, whatever their numbers: `most` must not part them.
            limit = most if alone else NO_LIMIT
            families[part.needs, limit, alone].append(part)
    return families


def _copies(item: Item, need: Vector | None, place: Place) -> int:
    """Replicas that an empty place takes."""
    if need is None:
        return 0
    copies = (size // part for size, part in zip(place.size, need, strict=True) if part)
    return min([item.replicas, *copies])


def _within(need: Vector, size: Vector) -> bool:
    return need[0] <= size[0] and need[1] <= size[1]


def _order(row: _Row) -> tuple[tuple[Vector, ...], int, str]:
    return tuple(need or (-1, -1) for need in row[0]), row[1], row[2]
