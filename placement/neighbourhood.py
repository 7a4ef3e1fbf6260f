"""The thorough pass of a defragmentation: windows of places, each by column generation.

Each place of a window takes one of several contents (placement.exchange); every replica must be
somewhere; the budget of moves holds, and so do the spread caps. The prices of the linear programme
say which contents to add; an integer programme over those found picks (price and branch), both by
HiGHS. A replica may so go where another has just left, which emptying one place after the other
misses. One window of all places would be the better programme, but is not solved in seconds.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from placement.evacuation import PER_DEVICE, devices_of
from placement.exchange import Exchange, Knapsack, exchange, exchanges
from placement.exchange_master import ExchangeMaster, ShadowPrices
from placement.exchange_window import Pinned, Window
from placement.problem import Packing, Place, Problem, Vector

EMPTIEST: Final = 20  # places of a window with least in them, and as many others or more
OTHERS: Final = 40
WINDOWS: Final = 24
IN_VAIN: Final = 8  # windows one after the other without a gain, and it ends
ROUNDS: Final = 12
PER_PLACE: Final = 3  # contents that a round adds for each place, the most promising
WITHIN_S: Final = 3.0


@dataclass(frozen=True)
class Limits:
    """At most `moves` replicas elsewhere, `per_device` for each device freed."""

    moves: int
    per_device: float = PER_DEVICE


class Neighbourhood:
    """Looks for a cheaper packing near `before`."""

    def __init__(
        self, problem: Problem, before: Packing, limits: Limits, pinned: Pinned = frozenset()
    ) -> None:
        """pinned: (item, place) that stay."""
        self._problem = problem
        self._before = before
        self._limits = limits
        self._pinned = pinned

    def improved(self, now: Packing, seed: int = 0) -> Packing:
        """`now`, found before within the limits, or cheaper still; the same for the same seed."""
        rng, in_vain = random.Random(seed), 0
        for _ in range(WINDOWS):
            places = self._drawn(now, rng)
            window = Window.of(self._problem, self._before, now, places, self._pinned)
            found = self._solved(window, now) if window.total else None
            better = found is not None and self._worth(found) < self._worth(now)
            now = found if found is not None and better else now
            in_vain = 0 if better else in_vain + 1
            if in_vain == IN_VAIN:
                break
        return now

    def _drawn(self, now: Packing, rng: random.Random) -> list[Place]:
        """The emptiest, and some of the others; those that were emptied among them."""
        share = dict.fromkeys(sorted(now.used | self._before.used), 0.0)
        for one in now.placed:
            place = self._problem.place[one.place]
            need = self._problem.item[one.item].need_at(place)
            assert need is not None, "it is there"
            parts = (part / size for part, size in zip(need, place.size, strict=True) if size)
            share[one.place] += one.replicas * max(parts)
        by_share = sorted(share, key=lambda name: (share[name], name))
        first = rng.sample(by_share[: 3 * EMPTIEST], min(EMPTIEST, len(by_share)))
        rest = sorted(set(by_share) - set(first))
        drawn = first + rng.sample(rest, min(OTHERS, len(rest)))
        return [self._problem.place[name] for name in sorted(drawn)]

    def _worth(self, packing: Packing) -> tuple[bool, int, int]:
        """The lower the better: within the limits, price, moves."""
        moves, freed = self._moves(packing, frozenset()), self._freed(packing, frozenset())
        beyond = moves > min(self._limits.moves, self._limits.per_device * freed)
        price = sum(self._problem.place[name].price for name in packing.used)
        return beyond, price, moves

    def _moves(self, packing: Packing, without: frozenset[str]) -> int:
        """Replicas that are not where they were, at other places than those."""
        return sum(
            max(one.replicas - packing.at.get((one.item, one.place), 0), 0)
            for one in self._before.placed
            if one.place not in without
        )

    def _freed(self, packing: Packing, without: frozenset[str]) -> int:
        freed = self._before.used - packing.used - without
        return sum(devices_of(self._problem.place[name]) for name in freed)

    def _solved(self, window: Window, now: Packing) -> Packing | None:
        names = frozenset(window.now)
        moved, freed = self._moves(now, names), self._freed(now, names)
        per_device = self._limits.per_device
        beyond = per_device * freed - moved
        master = ExchangeMaster(window, self._limits.moves - moved, per_device, beyond)
        for contents in (window.now, window.before):
            master.add(exchange(name, window.before[name], contents[name]) for name in names)
        master.add(exchange(name, window.before[name], {}) for name in sorted(window.emptiable))
        for _ in range(ROUNDS):
            prices = master.prices()
            if prices is None or not master.add(_promising(window, master, prices)):
                break
        chosen = master.chosen(WITHIN_S)
        return None if chosen is None else window.packing(now, _trimmed(window, chosen))


def _promising(window: Window, master: ExchangeMaster, prices: ShadowPrices) -> Iterator[Exchange]:
    """Those of each place that would lower the linear programme's cost most."""
    sacks: dict[tuple[tuple[str, Vector], ...], Knapsack] = {}
    most = max(place.size[0] for place in window.places), max(p.size[1] for p in window.places)
    for place in window.places:
        needs = window.needs_at(place)
        key = tuple(needs.items())
        if key not in sacks:
            sacks[key] = Knapsack(needs, prices.item, most)
        before, room = window.before[place.name], window.room[place.name]
        found = [
            (_reduced(one, master, prices), one)
            for one in exchanges(place.name, before, room, needs, sacks[key])
        ]
        best = sorted((pair for pair in found if pair[0] < -1e-7), key=lambda pair: pair[0])
        yield from (one for _, one in best[:PER_PLACE])


def _reduced(one: Exchange, master: ExchangeMaster, prices: ShadowPrices) -> float:
    """What the linear programme's cost changes by for each unit of it, spread caps left out."""
    worth = sum(prices.item[item] * count for item, count in one.content)
    return master.cost(one, prices.move) - worth - prices.place[one.place]


def _trimmed(window: Window, chosen: Sequence[Exchange]) -> dict[str, dict[str, int]]:
    """Contents with exactly the replicas that there are: what arrived beyond them never left.

    What is left to take away was in the window before, and is now outside it too."""
    contents = {one.place: dict(one.content) for one in chosen}
    for item in window.items:
        wanted = window.total[item]
        surplus = sum(content.get(item, 0) for content in contents.values()) - wanted
        for place, content in sorted(contents.items()):
            arrived = content.get(item, 0) - window.before[place].get(item, 0)
            if (back := min(surplus, arrived)) > 0:
                content[item] -= back
                surplus -= back
        for content in contents.values():
            back = min(surplus, content.get(item, 0))
            if back > 0:
                content[item] -= back
                surplus -= back
    return contents
