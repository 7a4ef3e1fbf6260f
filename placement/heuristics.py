"""Vector bin packing by greedy rules, over counted types.

First and best fit decreasing, and the bin-centric rules of Panigrahy, Talwar, Uyeda & Wieder,
"Heuristics for Vector Bin Packing" (Microsoft Research, 2011). None is always best: in two
dimensions even first fit decreasing can be worse than first fit in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from placement.bins import Bins, Integers, copies_that_fit

Floats = NDArray[np.float64]
Heuristic = Callable[[Bins, list[int]], None]
"""Fills open and new places; takes what it placed off the demand, a number for each type."""


def first_fit_decreasing(bins: Bins, demand: list[int]) -> None:
    """By the larger share of a place."""
    share = _least_share(bins).max(axis=1)
    for type_ in _decreasing(bins, share):
        _item_centric(bins, demand, type_, lambda rows: rows)


def best_fit_decreasing(bins: Bins, demand: list[int]) -> None:
    """By the sum of both shares, into the place with the least left."""
    share = _least_share(bins).sum(axis=1)
    for type_ in _decreasing(bins, share):
        _item_centric(bins, demand, type_, lambda rows: rows[_fullest(bins, rows)])


def dot_product(bins: Bins, demand: list[int]) -> None:
    """Fill one place at a time with what points most in the direction of its free room."""
    _bin_centric(bins, demand, _alignment)


def l2_norm(bins: Bins, demand: list[int]) -> None:
    """Fill one place at a time with what leaves the shortest vector of free room."""
    _bin_centric(bins, demand, _closeness)


ALL: dict[str, Heuristic] = {
    "first fit decreasing": first_fit_decreasing,
    "best fit decreasing": best_fit_decreasing,
    "dot product": dot_product,
    "L2 norm": l2_norm,
}


def _least_share(bins: Bins) -> Floats:
    """[type, dimension]: of the place where it takes the least."""
    share: Floats = bins.sizes.share.min(axis=1)
    return share


def _decreasing(bins: Bins, share: Floats) -> list[int]:
    """What has fewest kinds to go to first: several devices of one machine before fractions."""
    choices = (bins.sizes.share <= 1).all(axis=2).sum(axis=1)
    return [int(type_) for type_ in np.lexsort((-share, choices))]


def _fullest(bins: Bins, rows: Integers) -> Integers:
    size = np.maximum(bins.sizes.size[bins.kind[rows]], 1)
    order: Integers = np.argsort((bins.free[rows] / size).sum(axis=1), kind="stable")
    return order


def _item_centric(
    bins: Bins, demand: list[int], type_: int, order: Callable[[Integers], Integers]
) -> None:
    most = int(bins.sizes.most[type_])
    if demand[type_] and bins.rows:
        fit = bins.copies(type_)
        for row in order(np.flatnonzero(fit)):
            copies = min(int(fit[row]), most - bins.pattern[row].get(type_, 0))
            if copies > 0:
                demand[type_] -= bins.put(int(row), type_, copies, demand[type_])
            if not demand[type_]:
                return
    for kind, copies in _cheapest(bins, type_):
        full = min(demand[type_] // copies, bins.supply[kind])
        if full:
            bins.open(kind, {type_: copies}, full)
            demand[type_] -= full * copies
        if 0 < demand[type_] < copies and bins.supply[kind]:
            bins.open(kind, {type_: demand[type_]}, 1)
            demand[type_] = 0


def _cheapest(bins: Bins, type_: int) -> list[tuple[int, int]]:
    """Kinds with the copies they hold, the least price of a copy first."""
    need, size = bins.sizes.need[type_], bins.sizes.size
    fit = copies_that_fit(need, size)
    fit = np.minimum(fit, bins.sizes.most[type_])
    kinds = [kind for kind in range(len(size)) if fit[kind] and bins.supply[kind]]
    price = [own.price for own in bins.sizes.kinds]
    return sorted(
        ((kind, int(fit[kind])) for kind in kinds), key=lambda one: (price[one[0]] / one[1], one[0])
    )


_Score = Callable[[Floats, Floats, Floats], Floats]
"""Of each type, from weights of the dimensions, free room and needs in shares of the place."""


def _alignment(weight: Floats, free: Floats, need: Floats) -> Floats:
    scores: Floats = need @ (weight * free)
    return scores


def _closeness(weight: Floats, free: Floats, need: Floats) -> Floats:
    scores: Floats = -((free - need) ** 2 @ weight)
    return scores


def _bin_centric(bins: Bins, demand: list[int], score: _Score) -> None:
    holes = bins.rows
    for row in range(holes):
        _fill_hole(bins, row, demand, score)
    scarce = _rank(bins)
    while (best := _best_kind(bins, demand, score, scarce)) is not None:
        kind, pattern = best
        times = min(demand[type_] // copies for type_, copies in pattern.items())
        times = min(times, bins.supply[kind])
        bins.open(kind, pattern, times)
        for type_, copies in pattern.items():
            demand[type_] -= copies * times


def _fill_hole(bins: Bins, row: int, demand: list[int], score: _Score) -> None:
    kind = int(bins.kind[row])
    while bins.count[row]:
        before = bins.pattern[row]
        more = _fill(bins, kind, demand, score, bins.free[row].copy(), before)
        if not more:
            return
        times = min([bins.count[row], *(demand[type_] // more[type_] for type_ in more)])
        for type_, copies in more.items():
            demand[type_] -= copies * times
        bins.refill(row, more, times)


def _rank(bins: Bins) -> list[float]:
    """What one replica is worth: the least part of a price that it takes anywhere."""
    price = np.array([max(kind.price, 1) for kind in bins.sizes.kinds], np.float64)
    worth: list[float] = (bins.sizes.share.max(axis=2) * price).min(axis=1).tolist()
    return worth


def _best_kind(
    bins: Bins, demand: list[int], score: _Score, worth: list[float]
) -> tuple[int, dict[int, int]] | None:
    """The kind whose content is worth most for its price."""
    found: tuple[float, int, dict[int, int]] | None = None
    for kind, own in enumerate(bins.sizes.kinds):
        if bins.supply[kind] <= 0:
            continue
        pattern = _fill(bins, kind, demand, score, bins.sizes.size[kind].copy(), {})
        value = sum(worth[type_] * copies for type_, copies in pattern.items())
        gain = value / max(own.price, 1)
        if pattern and (found is None or gain > found[0]):
            found = gain, kind, pattern
    return found and (found[1], found[2])


def _fill(
    bins: Bins,
    kind: int,
    demand: Sequence[int],
    score: _Score,
    free: Integers,
    before: dict[int, int],
) -> dict[int, int]:
    """What to add to one place with so much free."""
    left = np.array(demand, np.int64)
    need = bins.sizes.need[:, kind]
    memory, compute = (int(own) for own in free)
    live = np.flatnonzero((left > 0) & (need[:, 0] <= memory) & (need[:, 1] <= compute))
    need, left = need[live], left[live]
    most = np.minimum(bins.sizes.most[live], left)
    if before:
        held = np.array([before.get(type_, 0) for type_ in live.tolist()], np.int64)
        most = np.minimum(bins.sizes.most[live] - held, left)
    size = np.maximum(bins.sizes.size[kind], 1)
    share = bins.sizes.share[live, kind]
    weight: Floats = left @ share / max(int(left.sum()), 1)
    chosen: dict[int, int] = {}
    while True:
        # Column by column: a reduction over the two dimensions takes most of the time otherwise.
        fits = (need[:, 0] <= memory) & (need[:, 1] <= compute) & (most > 0)
        if not fits.any():
            return chosen
        # What does not fit now never will: the arrays shrink with the room.
        live, need, share, most = live[fits], need[fits], share[fits], most[fits]
        best = int(score(weight, np.array([memory, compute]) / size, share).argmax())
        chosen[int(live[best])] = chosen.get(int(live[best]), 0) + 1
        most[best] -= 1
        memory, compute = memory - int(need[best, 0]), compute - int(need[best, 1])
