"""Kinds and types that have nothing to do with each other, told apart.

CPU machines and devices, or zones that share no item, are problems of their own: smaller ones, and
each one's bound may be rounded up by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from placement.grouped import Filled, Kind, Type


class Component(NamedTuple):
    """Their numbers in the whole, in order."""

    kinds: tuple[int, ...]
    types: tuple[int, ...]

    def of(
        self, kinds: Sequence[Kind], types: Sequence[Type]
    ) -> tuple[tuple[Kind, ...], tuple[Type, ...]]:
        own = tuple(
            types[type_]._replace(needs=tuple(types[type_].needs[kind] for kind in self.kinds))
            for type_ in self.types
        )
        return tuple(kinds[kind] for kind in self.kinds), own

    def whole(self, filled: Iterable[Filled]) -> list[Filled]:
        """In the numbers of the whole."""
        return [
            Filled(
                self.kinds[one.kind],
                tuple((self.types[type_], copies) for type_, copies in one.pattern),
                one.places,
            )
            for one in filled
        ]


def components(kinds: Sequence[Kind], types: Sequence[Type]) -> tuple[Component, ...]:
    """Every type fits some kind; a kind that nothing fits is in none."""
    leader = list(range(len(kinds)))

    def lead(kind: int) -> int:
        while leader[kind] != kind:
            kind = leader[kind]
        return kind

    fit = [[kind for kind, need in enumerate(type_.needs) if need is not None] for type_ in types]
    for own in fit:
        first = min(lead(kind) for kind in own)
        for kind in own:
            leader[lead(kind)] = first
    members: dict[int, tuple[set[int], list[int]]] = {}
    for type_, own in enumerate(fit):
        together, numbers = members.setdefault(lead(own[0]), (set(), []))
        together.update(own)
        numbers.append(type_)
    return tuple(
        Component(tuple(sorted(together)), tuple(numbers))
        for _, (together, numbers) in sorted(members.items())
    )
