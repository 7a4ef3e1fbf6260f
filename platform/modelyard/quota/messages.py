"""What ingresses and control tell each other about quotas. Plain frozen data, for pickle.

Every message says the whole state of its sender, and amounts that move are running totals: a
message that is lost, comes twice, late or out of order then changes nothing that the next one does
not put right. Units and rates are those of `Figures`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from modelyard.quota.figures import Key


class Grant(NamedTuple):
    """A holder's part of one bucket. credit: units of level ever given to this incarnation."""

    rate: int
    burst: int
    credit: int = 0


class Holding(NamedTuple):
    """What a holder has of one bucket. Of permits: burst those held, level those free.

    credited: the credit that it has taken; returned: units of level that it ever gave back.
    demand: what was asked of late, for comparing holders only. want: the level that a refused
    request needs, 0 for none.
    """

    rate: int
    burst: int
    level: int
    credited: int
    returned: int
    demand: int
    want: int


class Tally(NamedTuple):
    """Running totals of one tenant and model class at one ingress."""

    requests: int = 0
    refused: int = 0
    would_refuse: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def plus(self, other: Tally) -> Tally:
        return Tally(*(one + more for one, more in zip(self, other, strict=True)))


class HolderReport(NamedTuple):
    """Ingress to control, once a second and whenever a request lacks level.

    ingress: unique to the process. incarnation: raised whenever the holder gave up its splits.
    epoch and acked: of the last reply that it took. sequence: of this report.
    """

    ingress: str
    incarnation: int
    epoch: int
    acked: int
    sequence: int
    holdings: Mapping[Key, Holding]


class SplitReply(NamedTuple):
    """Control to ingress. Without grants it only renews. start_over: give up every split.
    again: report once more at once, there is something to be had.

    answers: the report's sequence. serial: of this reply, counted for each incarnation.
    """

    ingress: str
    incarnation: int
    epoch: int
    serial: int
    answers: int
    grants: Mapping[Key, Grant]
    start_over: bool = False
    again: bool = False
