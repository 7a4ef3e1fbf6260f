"""From counts to names: which place gets which content, and which item's replicas.

Caps per host are about names, so they are met here: contents with capped items go round the hosts
and take the first place whose host allows them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import count

from placement.grouped import NO_LIMIT, Filled, Grouped, Pattern
from placement.problem import Item, Place
from placement.room import Room


def settle(room: Room, groups: Grouped, filled: Iterable[Filled]) -> None:
    """Puts all of it into empty places, but what a cap per host forbids."""
    hand = _Hand(room, groups)
    by_kind: dict[int, list[Filled]] = {}
    for one in filled:
        by_kind.setdefault(one.kind, []).append(one)
    for kind, contents in sorted(by_kind.items()):
        places = groups.places[kind]
        if any(hand.capped(one.pattern) for one in contents):
            places = _round_the_hosts(places)
            # Those with most capped items are the hardest to find a host for.
            contents.sort(key=lambda one: -len(hand.capped(one.pattern)))
        free = deque(places)
        for one in contents:
            _spread(hand, free, one)


class _Hand:
    """Deals out the replicas of a type: one item after the other, so that each is in few places."""

    def __init__(self, room: Room, groups: Grouped) -> None:
        self._room, self._groups = room, groups
        items = room.problem.item
        self._left = [
            [(items[part.item], part.replicas) for part in parts] for parts in groups.parts
        ]
        self._is_capped = [type_.most < NO_LIMIT for type_ in groups.types]

    def capped(self, pattern: Pattern) -> Pattern:
        return tuple(own for own in pattern if self._is_capped[own[0]])

    def allowed(self, pattern: Pattern, place: Place) -> bool:
        """A capped type has one item only."""
        return all(
            self._room.most(self._item(type_), place) >= copies
            for type_, copies in self.capped(pattern)
        )

    def put(self, pattern: Pattern, place: Place) -> None:
        for type_, copies in pattern:
            left = self._left[type_]
            while copies and left:
                item, rest = left[-1]
                number = min(copies, rest)
                if self._is_capped[type_]:
                    number = min(number, self._room.most(item, place))
                if not number:
                    break
                self._room.put(item, place, number)
                copies -= number
                if rest > number:
                    left[-1] = item, rest - number
                else:
                    left.pop()

    def _item(self, type_: int) -> Item:
        left, parts = self._left[type_], self._groups.parts[type_]
        return left[-1][0] if left else self._room.problem.item[parts[0].item]


def _spread(hand: _Hand, free: deque[Place], one: Filled) -> None:
    search = bool(hand.capped(one.pattern))
    for _ in range(one.places):
        index = 0
        if search:
            found = next(
                (index for index, place in enumerate(free) if hand.allowed(one.pattern, place)),
                None,
            )
            search = found is not None  # no host will allow the next one either
            index = found or 0
        place = free[index]
        del free[index]
        hand.put(one.pattern, place)


def _round_the_hosts(places: Iterable[Place]) -> tuple[Place, ...]:
    """The first place of each host, then the second of each, and so on."""
    turns: dict[str, count[int]] = {}
    turn = {place.name: next(turns.setdefault(place.host, count())) for place in places}
    return tuple(sorted(places, key=lambda place: (turn[place.name], place.host, place.name)))
