"""Quota at control: stored before it is told, and gathered for the ingress that lacks it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from modelyard.config.quotas import Quota
from modelyard.control.ingress_post import IngressPost
from modelyard.control.quota_desk import QuotaDesk
from modelyard.control.reading import IngressEntry, Reading
from modelyard.control.store import StoreFailed
from modelyard.quota.book import Book
from modelyard.quota.bucket import UNITS
from modelyard.quota.figures import Key
from modelyard.quota.holder import Holder
from modelyard.quota.messages import HolderReport, SplitReply

KEY = Key("alpha", "generator", "input")
QUOTAS = {"alpha": Quota(input_tokens_per_min=6000, input_burst_tokens=1000)}


@dataclass
class Two:
    """A desk with two ingresses, all on one clock."""

    now: float = 0.0
    saved: list[bytes] = field(default_factory=list)
    failing: bool = False
    holders: dict[str, Holder] = field(default_factory=dict)
    silent: str = ""

    def __post_init__(self) -> None:
        self.holders = {name: Holder(name, 0.0) for name in ("i-1", "i-2")}
        self.desk = QuotaDesk(Book(1, 0.0, first=True), self.save, lambda: self.now)
        self.desk.adopt(QUOTAS, ())

    async def save(self, data: bytes) -> None:
        if self.failing:
            raise StoreFailed("no disk")
        self.saved.append(data)

    def reading(self) -> Reading:
        entries = tuple(IngressEntry(IngressPost(n, "", True), 0.0) for n in self.holders)
        return Reading((), entries, (), None, None, self.now + 100)

    async def second(self) -> None:
        self.now += 1.0
        self.desk.tick(self.reading())
        for holder in self.holders.values():
            reply = await self.desk.exchange(holder.report(self.now))
            if reply is not None:
                holder.take(reply, self.now)

    async def learned(self) -> None:
        for _ in range(14):
            await self.second()

    async def surrender(
        self, replies: Mapping[str, SplitReply], wanted: tuple[Key, ...]
    ) -> Iterable[HolderReport]:
        """As the ingresses do it."""
        reports = []
        for name, holder in self.holders.items():
            if name in replies:
                holder.take(replies[name], self.now)
            if name != self.silent:
                reports.append(holder.report(self.now))
        return reports

    def level(self, name: str) -> int:
        return self.holders[name].part(KEY, self.now).level(self.now) // UNITS

    def want(self, name: str, tokens: int) -> HolderReport:
        part = self.holders[name].part(KEY, self.now)
        part.want, part.want_until = tokens * UNITS, self.now + 2
        return self.holders[name].report(self.now)


async def test_both_ingresses_together_have_the_bucket() -> None:
    two = Two()
    await two.learned()
    assert 0 < two.level("i-1") < 1000
    assert 0 < two.level("i-2") < 1000
    assert two.level("i-1") + two.level("i-2") <= 1000


async def test_every_reply_was_stored_before_it_was_told() -> None:
    two = Two()
    await two.learned()
    bucket = two.holders["i-1"].part(KEY, two.now).bucket
    parts = [part[:6] for part in json.loads(two.saved[-1])["parts"]]
    assert [*KEY, "i-1", bucket.rate, bucket.burst] in parts


async def test_what_could_not_be_stored_is_not_told() -> None:
    two = Two()
    two.failing = True
    two.now = 1.0
    assert await two.desk.exchange(two.holders["i-1"].report(1.0)) is None
    two.failing = False
    await two.learned()
    assert two.level("i-1") > 0


async def test_a_recall_brings_what_the_other_does_not_need() -> None:
    two = Two()
    await two.learned()
    before = two.level("i-1")
    reply = await two.desk.recall(two.want("i-1", 900), two.surrender)
    assert reply is not None
    two.holders["i-1"].take(reply, two.now)
    assert before < 900 <= two.level("i-1")
    assert two.level("i-1") + two.level("i-2") <= 1000


async def test_a_silent_ingress_keeps_its_part_and_holds_nobody_up() -> None:
    two = Two()
    await two.learned()
    two.silent = "i-2"
    reply = await two.desk.recall(two.want("i-1", 900), two.surrender)
    assert reply is not None
    two.holders["i-1"].take(reply, two.now)
    assert two.level("i-1") + two.level("i-2") <= 1000


async def test_a_new_control_goes_on_with_what_was_kept() -> None:
    two = Two()
    await two.learned()
    kept, before = two.saved[-1], two.level("i-1") + two.level("i-2")
    two.desk = QuotaDesk(Book(2, two.now), two.save, lambda: two.now)
    two.desk.restore(kept, lost=False)
    two.desk.adopt(QUOTAS, ())
    await two.second()
    assert two.level("i-1") + two.level("i-2") >= before - 1
    await two.learned()
    assert two.level("i-1") + two.level("i-2") <= 1000
