"""An ingress's parts of the buckets, and its side of the talk with control.

**How long a split holds.** A split lives as long as its holder was heard from: by control, or by
the board, which control reads. Control that is killed or partitioned away takes no split with it:
the holder refills on its own and refuses only what exceeds its parts. A holder that neither control
nor the board has answered for LEASE_S cannot know whether it is taken for dead: it gives up every
split and starts over as a new incarnation. Control re-grants a lost holder's parts only when
neither control nor the board has heard of it for REGRANT_S, twice as long, so that no two hold the
same part even when clocks drift and answers are late. (Were control alone to renew, five seconds
without it would refuse every request; were nothing to lapse, a partitioned ingress would spend what
control gave to another.)

Debts and the permits of running requests outlive a split: they are facts, not grants.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from modelyard.quota.bucket import UNITS, Permits, TokenBucket
from modelyard.quota.figures import Key
from modelyard.quota.messages import Grant, HolderReport, Holding, SplitReply

LEASE_S: Final = 5.0
WANT_S: Final = 2.0  # how long a refused request's want stands: its caller may be back after 1 s
DEMAND_HALF_LIFE_S: Final = 5.0
# In one report, where there are more: ten thousand active tenants would cost seconds each second.
MAX_REPORTED: Final = 400
_KEPT_REPORTS: Final = 64


@dataclass(slots=True)
class Part:
    """What is held of one bucket, and the running totals of what moved."""

    bucket: TokenBucket
    permits: Permits
    is_permits: bool
    credited: int = 0
    returned: int = 0
    demand: float = 0.0
    want: int = 0
    want_until: float = 0.0

    def level(self, now: float) -> int:
        if self.is_permits:
            return self.permits.free
        self.bucket.refill(now)
        return self.bucket.level

    def ask(self, level: int, until: float) -> None:
        """Want this level from control, for the request at hand. Keeping the largest was turned
        down: one that can never be met kept every smaller one from being met."""
        self.want, self.want_until = level, until

    def take(self, grant: Grant, now: float) -> None:
        if self.is_permits:
            self.permits.resize(grant.burst)
            return
        self.bucket.resize(grant.rate, max(grant.burst, self.bucket.burst), now)
        self.bucket.level += grant.credit - self.credited
        self.credited = grant.credit
        # Level above the new burst was the whole bucket's: it goes back, and is not lost.
        self.returned += self.bucket.resize(grant.rate, grant.burst, now)

    def give_up(self, now: float) -> None:
        """Hold nothing. A debt stays."""
        self.permits.drop()
        self.bucket.resize(0, 0, now)
        self.credited = self.returned = 0

    def holding(self, now: float) -> Holding:
        if now >= self.want_until:
            self.want = 0
        want, level, demand = self.want, self.level(now), int(self.demand)
        if self.is_permits:
            return Holding(0, self.permits.held, level, 0, 0, demand, want)
        bucket = self.bucket
        return Holding(bucket.rate, bucket.burst, level, self.credited, self.returned, demand, want)


@dataclass(slots=True)
class Holder:
    """One per ingress process. `ingress` is unique to it; `now` is always this process's clock."""

    ingress: str
    started: float
    max_reported: int = MAX_REPORTED
    incarnation: int = 1
    epoch: int = 0
    parts: dict[Key, Part] = field(default_factory=dict)
    _serial: int = 0
    _sequence: int = 0
    _sent: dict[int, float] = field(default_factory=dict)  # reports: when each was sent
    _whole: dict[int, int] = field(default_factory=dict)  # reports of every part: under which epoch
    _told_all: int = -1  # the epoch to which a report of every part was answered
    _turn: int = 0
    _renewed: float = field(init=False)
    _heard_control: float = field(init=False)
    _decayed: float = field(init=False)

    def __post_init__(self) -> None:
        self._renewed = self._decayed = self.started
        self._heard_control = float("-inf")

    def part(self, key: Key, now: float) -> Part:
        """The part of a bucket; an empty one when control has given none."""
        found = self.parts.get(key)
        if found is None:
            found = Part(TokenBucket(0, 0, 0, now), Permits(0), key.is_permits)
            self.parts[key] = found
        return found

    def hears_control(self, now: float) -> bool:
        return now - self._heard_control < LEASE_S

    def lapse(self, now: float) -> None:
        """Give everything up when nobody has heard from us for LEASE_S."""
        if now - self._renewed >= LEASE_S:
            self._start_over(now)

    def posted(self, sent: float, now: float) -> None:
        """The board has taken a post that was sent at `sent`."""
        self.lapse(now)
        self._renewed = max(self._renewed, sent)

    def report(
        self,
        now: float,
        wanted: Iterable[Key] = (),
        *,
        brief: bool = False,
    ) -> HolderReport:
        """Of many parts those in turn, those that want level, and those `wanted` by control; a
        brief one leaves out those in turn, since a caller waits for it.

        A part left out says that nothing is known to have changed: what it gave back is told later.
        A new control must hear of every part once, or it would grant what is held.
        """
        self.lapse(now)
        self._decay(now)
        self._sequence += 1
        self._sent[self._sequence] = now
        self._sent.pop(self._sequence - _KEPT_REPORTS, None)
        self._whole.pop(self._sequence - _KEPT_REPORTS, None)
        keys = self._reported(wanted, 0 if brief else self.max_reported)
        return HolderReport(
            self.ingress,
            self.incarnation,
            self.epoch,
            self._serial,
            self._sequence,
            {key: self.parts[key].holding(now) for key in keys},
        )

    def take(self, reply: SplitReply, now: float) -> bool:
        """Take a reply unless it is late, doubled, of an older control or of a former life."""
        self.lapse(now)
        if (reply.ingress, reply.incarnation) != (self.ingress, self.incarnation):
            return False
        if (reply.epoch, reply.serial) <= (self.epoch, self._serial):
            return False
        # Not one sent under an earlier epoch: a new control answers it, and reads nothing of it.
        if self._whole.get(reply.answers) == reply.epoch:
            self._told_all = reply.epoch
        self.epoch, self._serial = reply.epoch, reply.serial
        if reply.start_over:
            self._start_over(now)
            return True
        sent = self._sent.get(reply.answers)
        if sent is not None:
            self._renewed = max(self._renewed, sent)
            self._heard_control = max(self._heard_control, sent)
        for key, grant in reply.grants.items():
            self.part(key, now).take(grant, now)
        return True

    def _reported(self, wanted: Iterable[Key], count: int) -> Iterable[Key]:
        if len(self.parts) <= self.max_reported or self._told_all != self.epoch:
            self._whole[self._sequence] = self.epoch
            return self.parts
        keys = list(self.parts)
        turn = [keys[(self._turn + at) % len(keys)] for at in range(count)]
        self._turn = (self._turn + count) % len(keys)
        asking = (key for key, part in self.parts.items() if part.want)
        return dict.fromkeys((*turn, *asking, *(key for key in wanted if key in self.parts)))

    def _start_over(self, now: float) -> None:
        self.incarnation += 1
        self._told_all = -1
        self._serial = 0
        self._renewed = now
        for part in self.parts.values():
            part.give_up(now)

    def _decay(self, now: float) -> None:
        factor = 0.5 ** (max(0.0, now - self._decayed) / DEMAND_HALF_LIFE_S)
        self._decayed = now
        for part in self.parts.values():
            part.demand *= factor
            if part.demand < (1 if part.is_permits else UNITS):
                part.demand = 0.0  # forgotten: else the split would never come to rest
