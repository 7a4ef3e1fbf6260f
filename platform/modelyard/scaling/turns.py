"""Whose turn it is to load into an area, and who makes room for it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from modelyard.scaling.area import (
    Moment,
    Presence,
    Residency,
    fits,
    free_gb,
    kept_until,
    leaving_gb,
    sum_gb,
)
from modelyard.scaling.eviction import victims
from modelyard.scaling.loading_orders import SWAP_EVERY_S, patience_s


def served(known: Residency, moment: Moment) -> Residency:
    """One load at a time, off peak, in order. The first may evict what is idle, and once its
    patience is over what is in use. Until then a smaller one behind it may pass while nothing can
    be evicted for it, and never once memory is being freed for it."""
    able = [version for version, _ in known.waiting if _is_able(known, moment, version)]
    known = replace(known, head=_head(known, able, moment.now))
    if known.head is None or _is_loading(known, moment):
        return known
    one, since = moment.models[known.head[0]], known.head[1]
    is_starved = moment.now >= since + patience_s(one)
    if moment.is_peak and not is_starved:
        return known
    room_gb = free_gb(known, moment, but=one.version)
    if fits(one.memory_gb, room_gb):
        return _admitted(known, one.version, moment.now)
    room_gb += leaving_gb(known, moment)
    if fits(one.memory_gb, room_gb):
        return known
    if not moment.is_peak or moment.now >= since + 2 * patience_s(one):
        gone = victims(known, moment, one.memory_gb - room_gb, in_use=is_starved)
        if gone and moment.now >= known.swapped_at + SWAP_EVERY_S:
            return _evicted(known, gone, moment.now)
    return known if is_starved else _passed(known, able[1:], moment)


def _is_able(known: Residency, moment: Moment, version: str) -> bool:
    """Whether it could be loaded if others made room. Who waits for what an operator holds stands
    in nobody's way."""
    one = moment.models[version]
    if version in known.leaving or one.presence is not Presence.ABSENT:
        return False
    others = (other for other in moment.models.values() if other.version != version)
    held = (other for other in others if other.held and other.presence is not Presence.ABSENT)
    return fits(one.memory_gb, moment.memory_gb - sum_gb(held))


def _head(known: Residency, able: list[str], now: float) -> tuple[str, float] | None:
    if not able:
        return None
    is_same = known.head is not None and known.head[0] == able[0]
    return known.head if is_same else (able[0], now)


def _is_loading(known: Residency, moment: Moment) -> bool:
    """Two loads at once would slow each other and the device. One that is late holds up nobody."""
    return any(
        moment.models[version].presence is not Presence.READY
        and moment.now < kept_until(known, moment.models[version])
        for version in known.admitted
    )


def _passed(known: Residency, able: list[str], moment: Moment) -> Residency:
    for version in able:
        if fits(moment.models[version].memory_gb, free_gb(known, moment, but=version)):
            return _admitted(known, version, moment.now)
    return known


def _admitted(known: Residency, version: str, now: float) -> Residency:
    return replace(
        known,
        waiting=tuple(entry for entry in known.waiting if entry[0] != version),
        admitted={**known.admitted, version: now},
        vanished={v: until for v, until in known.vanished.items() if v != version},
        loads=known.loads + 1,
    )


def _evicted(known: Residency, gone: tuple[str, ...], now: float) -> Residency:
    worth = known.worth
    for version in gone:
        worth = worth.evicted(version)
    without = left(known, gone, now)
    return replace(without, swapped_at=now, worth=worth, evictions=known.evictions + len(gone))


def left(known: Residency, versions: Collection[str], now: float) -> Residency:
    """With these going: they take no requests, and their memory is free once they are gone."""
    return replace(
        known,
        admitted={v: at for v, at in known.admitted.items() if v not in versions},
        leaving={**known.leaving, **dict.fromkeys(versions, now)},
        there=known.there - set(versions),
    )
