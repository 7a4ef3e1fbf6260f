"""An answer in counts: kinds of place and their contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from placement import prices
from placement.bins import Bins, Sizes
from placement.grouped import Filled, Kind, Type
from placement.heuristics import ALL
from placement.sums import least_price


class Answer(NamedTuple):
    """The less the better, in this order. short: replicas of each type without a place."""

    shortage: int
    price: int
    places: int
    method: str
    filled: tuple[Filled, ...]
    short: tuple[int, ...]


def answer(
    kinds: Sequence[Kind], filled: Iterable[Filled], short: Sequence[int], method: str
) -> Answer:
    merged: Counter[tuple[int, tuple[tuple[int, int], ...]]] = Counter()
    for one in filled:
        merged[one.kind, one.pattern] += one.places
    own = tuple(Filled(kind, pattern, places) for (kind, pattern), places in sorted(merged.items()))
    return Answer(
        sum(short),
        sum(kinds[one.kind].price * one.places for one in own),
        sum(one.places for one in own),
        method,
        own,
        tuple(short),
    )


def by_heuristics(kinds: Sequence[Kind], types: Sequence[Type]) -> Answer:
    """The best of all rules, or the first that needs no more than the sums of what is asked for;
    kinds and types not empty, prices positive."""
    demand = [type_.replicas for type_ in types]
    allowed = [kind.price for kind in kinds]
    least = prices.round_up(least_price(kinds, types), allowed)
    return finished(kinds, types, (), demand, target=least)


def finished(
    kinds: Sequence[Kind],
    types: Sequence[Type],
    started: Iterable[Filled],
    demand: Sequence[int],
    *,
    target: int = 0,
) -> Answer:
    """The best way to place the demand in the holes of what is started, and in new places. target:
    a price that cannot be improved upon; what reaches it ends the search."""
    sizes = Sizes(kinds, types)
    begun = list(started)
    answers = []
    for name, heuristic in ALL.items():
        bins = Bins(sizes, [kind.supply for kind in kinds])
        for one in begun:
            bins.open(one.kind, dict(one.pattern), one.places)
        short = list(demand)
        heuristic(bins, short)
        answers.append(answer(kinds, bins.filled(), short, name))
        if not answers[-1].shortage and answers[-1].price <= target:
            break
    return min(answers, key=lambda one: one[:3])
