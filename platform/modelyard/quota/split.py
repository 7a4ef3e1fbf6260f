"""How one bucket is to be divided among its holders and the pool that control keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from modelyard.quota.figures import Figures

FLOOR_DIVISOR: Final = 10  # a tenth is split evenly: a first request finds something anywhere


class Share(NamedTuple):
    """A holder as the division sees it. level: what it has now, by its last report and its rate.

    busy: permits in use, which no division can move.
    """

    demand: int
    level: int
    want: int = 0
    busy: int = 0


class Division(NamedTuple):
    """The part that each holder should have; what they leave is the pool's.

    asker: for whose want level is being gathered. Until it is there no other part may grow: it
    would take along what the pool has gathered.
    """

    parts: dict[str, Figures]
    asker: str | None


def divide(whole: Figures, shares: Mapping[str, Share], pool_level: int) -> Division:
    """Divide by demand and wants.

    A tenth is split evenly between the holders and the pool, the rest by demand (evenly too while
    there is none). Then a want is met, the first of `shares` first: a request that its holder's
    part cannot carry gets the level that lies idle in the pool and with the others, if that is
    enough. If it is not, nothing moves: gathering would only take from others what they can use.
    """
    movable = Figures(whole.rate, max(0, whole.burst - sum(one.busy for one in shares.values())))
    rates = _by_demand(movable.rate, shares)
    bursts = _by_demand(movable.burst, shares)
    parts, asker = _with_wants(movable.burst, bursts, shares, pool_level)
    return Division(
        {name: Figures(rates[name], parts[name] + shares[name].busy) for name in shares}, asker
    )


def _by_demand(amount: int, shares: Mapping[str, Share]) -> dict[str, int]:
    asked = sum(share.demand for share in shares.values())
    if not asked:
        return dict.fromkeys(shares, amount // (len(shares) + 1))
    even = amount // FLOOR_DIVISOR // (len(shares) + 1)
    rest = amount - even * (len(shares) + 1)
    return {name: even + rest * share.demand // asked for name, share in shares.items()}


def _with_wants(
    whole: int, parts: dict[str, int], shares: Mapping[str, Share], pool_level: int
) -> tuple[dict[str, int], str | None]:
    promised = dict.fromkeys(shares, 0)  # level that was gathered and not used yet
    for name, share in shares.items():
        if not 0 < share.want <= whole:
            continue
        missing = share.want - share.level - max(0, pool_level)
        idle = {
            other: max(0, one.level - promised[other])
            for other, one in shares.items()
            if other != name
        }
        if share.level >= share.want:
            promised[name] = share.want
        elif missing <= sum(idle.values()):
            room = _with_room(whole, parts, name, share.want)
            return _gathered(room, shares, idle, missing), name
    for name, want in promised.items():
        if want:
            parts = _with_room(whole, parts, name, want)
    return parts, None


def _gathered(
    parts: dict[str, int], shares: Mapping[str, Share], idle: Mapping[str, int], missing: int
) -> dict[str, int]:
    """Parts that leave the others, of their idle level, only what the asker does not need.

    Everyone gives the same fraction; rounding is at the givers' cost.
    """
    if missing <= 0:
        return parts
    for name, level in idle.items():
        given = -(-level * missing // sum(idle.values()))
        parts[name] = min(parts[name], max(0, shares[name].level - given))
    return parts


def _with_room(whole: int, parts: dict[str, int], asker: str, want: int) -> dict[str, int]:
    """The same parts with a burst of at least `want` for the asker, at the others' cost."""
    own = parts[asker]
    if own >= want:
        return dict(parts)
    return {
        name: want if name == asker else part * (whole - want) // (whole - own)
        for name, part in parts.items()
    }
