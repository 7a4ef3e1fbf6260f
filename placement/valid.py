"""Is a packing one? Checked from the names up, with nothing of how it was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from placement.problem import Packing, Problem


def violations(problem: Problem, packing: Packing) -> tuple[str, ...]:
    """A sentence for each rule broken: unknown names, room, numbers, zones, caps."""
    unknown = tuple(_unknown(problem, packing))
    if unknown:
        return unknown
    return (
        *_where(problem, packing),
        *_room(problem, packing),
        *_numbers(problem, packing),
        *_caps(problem, packing),
    )


def _unknown(problem: Problem, packing: Packing) -> Iterator[str]:
    for one in packing.placed:
        if one.item not in problem.item:
            yield f"{one.item} at {one.place} is not asked for"
        if one.place not in problem.place:
            yield f"{one.place}, where {one.item} is to be, is not there"
    for item, _ in packing.unplaced:
        if item not in problem.item:
            yield f"{item}, said to be without a place, is not asked for"


def _where(problem: Problem, packing: Packing) -> Iterator[str]:
    for one in packing.placed:
        place = problem.place[one.place]
        if problem.item[one.item].need_at(place) is None:
            yield f"{one.item} may not be at {one.place} ({place.pool}, zone {place.zone})"


def _room(problem: Problem, packing: Packing) -> Iterator[str]:
    used: dict[str, list[int]] = {}
    for one in packing.placed:
        need = problem.item[one.item].needs.get(problem.place[one.place].pool, (0, 0))
        own = used.setdefault(one.place, [0, 0])
        own[0] += need[0] * one.replicas
        own[1] += need[1] * one.replicas
    for name, taken in sorted(used.items()):
        size = problem.place[name].size
        if taken[0] > size[0] or taken[1] > size[1]:
            yield f"{name} has {size[0]}, {size[1]} and would hold {taken[0]}, {taken[1]}"


def _numbers(problem: Problem, packing: Packing) -> Iterator[str]:
    counts: Counter[str] = Counter()
    for one in packing.placed:
        counts[one.item] += one.replicas
        if one.replicas < 1:
            yield f"{one.item} at {one.place} has {one.replicas} replicas"
    for name, replicas in packing.unplaced:
        counts[name] += replicas
        if replicas < 1:
            yield f"{name} has {replicas} replicas without a place"
    if len({name for name, _ in packing.unplaced}) < len(packing.unplaced):
        yield "An item is listed twice as without a place"
    if len({(one.item, one.place) for one in packing.placed}) < len(packing.placed):
        yield "An item is listed twice at one place"
    for item in problem.items:
        if counts[item.name] != max(0, item.replicas):
            yield f"{item.name} asks for {item.replicas} replicas, not {counts[item.name]}"


def _caps(problem: Problem, packing: Packing) -> Iterator[str]:
    hosts: Counter[tuple[str, str]] = Counter()
    zones: Counter[tuple[str, str]] = Counter()
    for one in packing.placed:
        place = problem.place[one.place]
        hosts[one.item, place.host] += one.replicas
        zones[one.item, place.zone] += one.replicas
    for (name, host), count in sorted(hosts.items()):
        cap = problem.item[name].per_host
        if cap is not None and count > cap:
            yield f"{name} has {count} replicas on host {host}, more than {cap}"
    for (name, zone), count in sorted(zones.items()):
        cap = problem.item[name].per_zone
        if cap is not None and count > cap:
            yield f"{name} has {count} replicas in zone {zone}, more than {cap}"
