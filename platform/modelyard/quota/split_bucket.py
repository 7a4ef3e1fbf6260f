"""One bucket as control keeps it: who may hold how much of it, and the pool of the rest."""

from __future__ import annotations

from modelyard.quota.account import Account
from modelyard.quota.bucket import TokenBucket
from modelyard.quota.figures import Figures, Key
from modelyard.quota.messages import Grant, Holding
from modelyard.quota.split import Division, Share, divide


class SplitBucket:
    """What the accounts may have and the pool never sum to more than the whole.

    The pool has no bucket while control still learns, nor for permits, which are only counted.
    """

    def __init__(self, key: Key, whole: Figures) -> None:
        self.key = key
        self.whole = whole
        self.accounts: dict[str, Account] = {}
        self._pool: TokenBucket | None = None
        self._wants: dict[str, None] = {}  # holders, in the order in which their wants came

    def open(self, full: bool, now: float) -> None:
        """Begin to grant. full: nobody can have spent anything of it."""
        if not self.key.is_permits and self._pool is None:
            level = self.whole.burst if full else 0
            self._pool = TokenBucket(0, self.whole.burst, level, now)
            self._resize(now)

    def adopt(self, whole: Figures, now: float) -> None:
        """Other figures. A larger bucket is not fuller; of a smaller one parts are called in."""
        self._refill(now)
        self.whole = whole
        self._resize(now)

    def read(self, ingress: str, holding: Holding, is_last: bool, now: float) -> None:
        """Take in a report. is_last: its holder has taken our last reply."""
        self._refill(now)
        came_back = self.accounts.setdefault(ingress, Account()).read(holding, is_last, now)
        self._resize(now)
        if self._pool is not None:
            self._pool.level = min(self._pool.burst, self._pool.level + came_back)
        if holding.want:
            self._wants.setdefault(ingress)
        else:
            self._wants.pop(ingress, None)

    def grant(self, ingress: str, now: float) -> Grant:
        """The part that the holder should have now, as far as nobody else may have it."""
        level, free = self.pool_level(now), self.free
        account = self.accounts.setdefault(ingress, Account())
        parts, asker = self._divided(now)
        part = parts[ingress]
        if asker is None and free.burst >= 0 and free.rate >= 0:
            part = account.steadied(part)
        growth = free.burst if asker in (ingress, None) else 0
        rate = min(part.rate, account.rate + max(0, free.rate))
        burst = min(part.burst, account.burst + max(0, growth))
        credit = 0
        if self._pool is not None:
            credit = _credit(level, free.burst, burst, account, account.share(self.key, now))
            self._pool.level -= credit
        grant = account.grant(Figures(rate, burst), credit)
        self._resize(now)
        return grant

    def forget(self, ingress: str, now: float, is_gone: bool) -> None:
        """The holder's part goes to the pool, empty: nobody knows what was left in it.

        is_gone: it has ended, and what it owed when last heard of the pool pays.
        """
        self._refill(now)
        self._wants.pop(ingress, None)
        account = self.accounts.pop(ingress, None)
        self._resize(now)
        if account is not None and is_gone and self._pool is not None:
            self._pool.level += min(0, account.level)

    @property
    def free(self) -> Figures:
        """What nobody holds; below 0 while a bucket that has shrunk is still being called in."""
        accounts = self.accounts.values()
        return Figures(
            self.whole.rate - sum(one.rate for one in accounts),
            self.whole.burst - sum(one.burst for one in accounts),
        )

    def pool_level(self, now: float) -> int:
        """Units, or permits, that no holder has."""
        if self.key.is_permits:
            return self.free.burst
        self._refill(now)
        return 0 if self._pool is None else self._pool.level

    def gathers_for(self, ingress: str, now: float) -> bool:
        """Whether level is being called in from the others for this one."""
        return ingress in self._wants and self._divided(now).asker == ingress

    def is_wanted(self, but_by: str) -> bool:
        """Whether anyone but this one wants level."""
        return any(name != but_by for name in self._wants)

    def lacks(self, ingress: str, now: float) -> bool:
        """Whether level that it wants is neither with it nor on the way."""
        if ingress not in self._wants:
            return False
        share = self.accounts[ingress].share(self.key, now)
        return share.level < share.want

    def _divided(self, now: float) -> Division:
        order = [*self._wants, *(name for name in self.accounts if name not in self._wants)]
        shares = {name: self.accounts[name].share(self.key, now) for name in order}
        return divide(self.whole, shares, self.pool_level(now))

    def _refill(self, now: float) -> None:
        if self._pool is not None:
            self._pool.refill(now)

    def _resize(self, now: float) -> None:
        if self._pool is not None:
            free, extra = self.free, sum(one.extra for one in self.accounts.values())
            self._pool.resize(max(0, free.rate), max(0, free.burst - extra), now)


def _credit(level: int, free: int, burst: int, account: Account, share: Share) -> int:
    """The level that goes along: with a larger burst its part of the pool's, and for a want all
    that is missing."""
    grown = max(0, burst - account.burst)
    credit = level * grown // free if free > 0 else 0
    if 0 < share.want <= burst:
        credit = max(credit, share.want - share.level)
    return max(0, min(credit, level, burst - share.level))
