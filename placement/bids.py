"""What free room is worth, given the mix of what is asked for.

The price of a residue is the most it could still hold, valued at the duals of the mix's linear
relaxation: placing a replica costs what it takes off that. It is the fragmentation gradient of Weng
et al. ("Beware of Fragmentation", ATC'23) with prices in the place of frequencies: best fit, and
their measure, leave twice as much unused where two to four replicas fill a device
(docs/placement.md).
"""

from __future__ import annotations

from functools import lru_cache

from placement.columns import DUAL_UNITS, Pricer, relaxation
from placement.grouped import Kind, Type
from placement.pricing import worth
from placement.problem import Vector

_ROUNDS = 4
"""Of pricing: rough duals do, and an addition must be quick."""


class Bids:
    """Worth of free room, in millionths of the dearest place."""

    def __init__(self, kinds: tuple[Kind, ...], types: tuple[Type, ...]) -> None:
        self._pricer = Pricer(kinds, types, up=False)
        relaxed = relaxation(kinds, types, up=False, limited=False, rounds=_ROUNDS)
        # As lists: an addition reads single numbers, which arrays are slow at.
        self._tables: list[list[list[int]]] = []
        for kind, own in enumerate(self._pricer.grids):
            table = worth(self._pricer.choices(relaxed.duals, kind), own.size)
            self._tables.append((table // (DUAL_UNITS // 10**6)).tolist())
        dearest = max(kind.price for kind in kinds)
        self._price = [kind.price * 10**6 // dearest for kind in kinds]

    def worth(self, kind: int, free: Vector) -> int:
        memory, compute = self._pricer.grids[kind].steps(free, up=False)
        return self._tables[kind][memory][compute]

    def price(self, kind: int) -> int:
        return self._price[kind]

    def new(self, kind: int, free: Vector) -> int:
        """What it costs to open a place and leave so much of it."""
        full = self._tables[kind][-1][-1]
        return max(full, self._price[kind]) - self.worth(kind, free)


def bids(kinds: tuple[Kind, ...], types: tuple[Type, ...]) -> Bids:
    """Of a mix: the numbers of replicas are rounded up to powers of four, so that another replica
    seldom needs new bids, and the supply does not count."""
    mix = tuple(type_._replace(replicas=_power_of_four(type_.replicas)) for type_ in types)
    return _bids(tuple(kind._replace(supply=1) for kind in kinds), mix)


def _power_of_four(replicas: int) -> int:
    """Of two it would be learned twice as often, and place no better."""
    return 1 << -(-(replicas - 1).bit_length() // 2) * 2


@lru_cache(maxsize=8)
def _bids(kinds: tuple[Kind, ...], mix: tuple[Type, ...]) -> Bids:
    return Bids(kinds, mix)
