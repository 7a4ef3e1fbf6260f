"""Control's side: what every holder was granted, and how the buckets are split anew.

What holders may have never sums to more than the bucket, whatever is lost: a part that grows is
counted when it is sent, one that shrinks when its holder has acknowledged it (debit, acknowledge,
then credit). Level moves as running totals in both directions, and level under way counts against
the pool. When a holder's part is void is said in `holder`.

**Restart.** A new control has a higher epoch, and a holder that has taken it refuses older ones.
With a complete snapshot (one saved before each reply was sent) it goes on at once. Otherwise it
first learns: for REGRANT_S, and until every ingress on the board has reported under the new
epoch, it renews and grants nothing. It never knows the level of what it did not grant, so its pool
starts empty; only where nobody can have spent anything does it start full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from modelyard.quota.account import Account
from modelyard.quota.figures import NOTHING, Figures, Key
from modelyard.quota.holder import LEASE_S
from modelyard.quota.messages import Grant, HolderReport, SplitReply
from modelyard.quota.split_bucket import SplitBucket

REGRANT_S: Final = 2 * LEASE_S
MAX_STORED: Final = 4000  # parts; each takes 10 us to write down, at every report
EAGER_BUCKETS: Final = 400  # of some fifty tenants: every ingress holds a part of each


@dataclass(frozen=True, slots=True)
class Seen:
    """The board's word: seconds since each ingress's last post, and how long the board has run."""

    ages_s: Mapping[str, float]
    up_s: float


@dataclass(slots=True)
class Known:
    """A holder. confirmed: it has reported under our epoch, so it takes no older control's word."""

    incarnation: int
    heard: float
    confirmed: bool = False
    sequence: int = 0
    serial: int = 0


class Book:
    """One per control process. epoch: above every earlier control's.

    first: no control was here before, by what the board and the store say. eager_buckets: up to so
    many, an ingress is given its part before it asks.
    """

    def __init__(
        self, epoch: int, now: float, first: bool = False, eager_buckets: int = EAGER_BUCKETS
    ) -> None:
        self.epoch = epoch
        self._eager_buckets = eager_buckets
        self._started = now
        self._learning = True
        self._full = first
        self._adopted = False
        self._buckets: dict[Key, SplitBucket] = {}
        self._known: dict[str, Known] = {}

    @property
    def is_learning(self) -> bool:
        return self._learning

    def adopt(self, figures: Mapping[Key, Figures], now: float) -> None:
        """Take the figures of a new table or override. A new bucket is full, and a removed one is
        remembered, or leaving it out and in again would fill it."""
        for key in dict.fromkeys((*self._buckets, *figures)):
            self._bucket(key).adopt(figures.get(key, NOTHING), now)
        if not self._learning:
            self._open(self._full or self._adopted, now)
        self._adopted = True

    def take(self, report: HolderReport, now: float) -> SplitReply | None:
        """Read a report and answer it. None: it is late, doubled, or of a later control."""
        known = self._of(report, now)
        if known is None:
            return None
        known.heard, known.sequence = now, report.sequence
        if not known.confirmed:
            held = any(one.rate or one.burst for one in report.holdings.values())
            if held and not self._learning and not self._has_accounts(report.ingress):
                # We took it for gone, and its parts are others' by now.
                return self._reply(report, known, {}, start_over=True)
            if report.epoch != self.epoch:
                return self._reply(report, known, {}, again=True)
            self._confirm(known, report)
        for key, holding in report.holdings.items():
            self._bucket(key).read(report.ingress, holding, report.acked == known.serial, now)
        if self._learning:
            return self._reply(report, known, {})
        return self._granted(report, known, now)

    def afresh(self, report: HolderReport, now: float) -> SplitReply | None:
        """Another reply to a report that was taken, after others have given level back."""
        known = self._known.get(report.ingress)
        if known is None or not known.confirmed or self._learning:
            return None
        if (known.incarnation, known.sequence) != (report.incarnation, report.sequence):
            return None
        return self._granted(report, known, now)

    def tick(self, now: float, seen: Seen | None) -> None:
        """Once a second: forget holders that are gone, end the learning. None: no board."""
        if seen is None:
            return
        for ingress, age_s in seen.ages_s.items():
            if (known := self._known.get(ingress)) is not None:
                known.heard = max(known.heard, now - age_s)
        if seen.up_s < REGRANT_S:  # a young board has not heard of everyone
            return
        for ingress, known in list(self._known.items()):
            if now - known.heard >= REGRANT_S:
                self._forget(ingress, now, is_gone=True)
        if self._learning and now - self._started >= REGRANT_S:
            living = {name for name, age_s in seen.ages_s.items() if age_s < REGRANT_S}
            confirmed = {name for name, known in self._known.items() if known.confirmed}
            if living | self._known.keys() <= confirmed:
                self._learned(now)

    def lacks(self, ingress: str, now: float) -> bool:
        """Whether level that it wants is neither with it nor on the way."""
        return any(bucket.lacks(ingress, now) for bucket in self._buckets.values())

    def owing(self, asker: str, now: float) -> frozenset[str]:
        """The other holders whose next reports bring level that is being gathered for the asker;
        nobody when all of it together would not do."""
        return frozenset(
            name
            for bucket in self._buckets.values()
            if bucket.gathers_for(asker, now)
            for name in bucket.accounts
            if name != asker
        )

    def pool_level(self, key: Key, now: float) -> int:
        """Units, or permits, that no holder has."""
        return self._bucket(key).pool_level(now)

    def snapshot(self) -> dict[str, Any]:
        """The grants as plain data for JSON; never levels or reservations. Of more parts than can
        be stored each second it says so, and the next control learns them."""
        if sum(len(one.accounts) for one in self._buckets.values()) > MAX_STORED:
            return {"epoch": self.epoch, "complete": False, "holders": {}, "parts": []}
        return {
            "epoch": self.epoch,
            "complete": True,
            "holders": {name: known.incarnation for name, known in self._known.items()},
            "parts": [
                [*key, name, one.rate, one.burst, one.extra]
                for key, bucket in self._buckets.items()
                for name, one in bucket.accounts.items()
            ],
        }

    def restore(self, snapshot: Mapping[str, Any], complete: bool, now: float) -> None:
        """Before the first report. complete: it was saved before each reply was sent."""
        self._full = False
        for ingress, incarnation in snapshot["holders"].items():
            self._known[ingress] = Known(incarnation, now)
        for tenant, model_class, direction, ingress, *amounts in snapshot["parts"]:
            key = Key(tenant, model_class, direction)
            self._bucket(key).accounts[ingress] = Account(*amounts)
        if complete and snapshot["complete"]:
            self._learned(now)

    def _bucket(self, key: Key) -> SplitBucket:
        found = self._buckets.get(key)
        if found is None:
            found = self._buckets[key] = SplitBucket(key, NOTHING)
        return found

    def _of(self, report: HolderReport, now: float) -> Known | None:
        known = self._known.get(report.ingress)
        if report.epoch > self.epoch:
            return None
        if known is None or report.incarnation > known.incarnation:
            # A later incarnation has given everything up, as it says itself.
            self._forget(report.ingress, now, is_gone=False)
            known = self._known[report.ingress] = Known(report.incarnation, now)
        if report.incarnation < known.incarnation or report.sequence <= known.sequence:
            return None
        return known

    def _has_accounts(self, ingress: str) -> bool:
        return any(ingress in bucket.accounts for bucket in self._buckets.values())

    def _confirm(self, known: Known, report: HolderReport) -> None:
        known.confirmed = True
        for key, holding in report.holdings.items():
            self._bucket(key).accounts.setdefault(report.ingress, Account()).adopt(holding)
            if holding.credited:
                self._full = False

    def _forget(self, ingress: str, now: float, is_gone: bool) -> None:
        self._known.pop(ingress, None)
        for bucket in self._buckets.values():
            bucket.forget(ingress, now, is_gone)

    def _learned(self, now: float) -> None:
        self._learning = False
        self._open(self._full, now)

    def _open(self, full: bool, now: float) -> None:
        for bucket in self._buckets.values():
            bucket.open(full, now)

    def _granted(self, report: HolderReport, known: Known, now: float) -> SplitReply:
        # Of many buckets only those that this ingress has used: the first request of a tenant then
        # recalls its level, and ten thousand tenants that ask nothing cost nothing each second.
        few = len(self._buckets) <= self._eager_buckets
        keys = list(self._buckets) if few else [k for k in report.holdings if k in self._buckets]
        grants = {key: self._buckets[key].grant(report.ingress, now) for key in keys}
        gives = any(
            grants[key].burst < holding.burst and self._buckets[key].is_wanted(report.ingress)
            for key, holding in report.holdings.items()
        )
        return self._reply(report, known, grants, again=gives)

    def _reply(
        self,
        report: HolderReport,
        known: Known,
        grants: Mapping[Key, Grant],
        start_over: bool = False,
        again: bool = False,
    ) -> SplitReply:
        known.serial += 1
        return SplitReply(
            report.ingress,
            report.incarnation,
            self.epoch,
            known.serial,
            report.sequence,
            grants,
            start_over,
            again,
        )
