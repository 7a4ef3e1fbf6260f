"""Where control grants quota: the book, each grant stored before it is told, and recalls."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from modelyard.config.quotas import Quota
from modelyard.contract.errors import ModelyardError
from modelyard.control.published import Override
from modelyard.control.reading import Reading
from modelyard.quota.book import Book, Seen
from modelyard.quota.figures import Key, figures_of
from modelyard.quota.messages import HolderReport, SplitReply

log = logging.getLogger("modelyard.control")

# The first asks who holds idle level and cuts their parts, the second brings what they gave back.
RECALL_ROUNDS: Final = 2

Save = Callable[[bytes], Awaitable[None]]
# Tells each ingress its reply, by ingress, and returns the reports of those who answered in time,
# with what they hold of the buckets that are wanted.
Surrender = Callable[[Mapping[str, SplitReply], tuple[Key, ...]], Awaitable[Iterable[HolderReport]]]


class QuotaDesk:
    """One per control process and epoch. `save` raises ModelyardError when it did not."""

    def __init__(self, book: Book, save: Save, now: Callable[[], float]) -> None:
        self._book = book
        self._save = save
        self._now = now
        self._saved = b""
        self._one_at_a_time = asyncio.Lock()

    def restore(self, kept: bytes, *, lost: bool) -> None:
        """Take the last saved snapshot. lost: the store was, so later grants may be missing in it;
        otherwise none is, because every reply waits for its save."""
        self._book.restore(json.loads(kept), complete=not lost, now=self._now())

    def adopt(self, quotas: Mapping[str, Quota], overrides: Iterable[Override]) -> None:
        self._book.adopt(figures_of(quotas, overrides), self._now())

    def tick(self, reading: Reading | None) -> None:
        """Once a second. None: the board did not answer."""
        seen = None
        if reading is not None:
            ages_s = {entry.post.ingress: entry.age_s for entry in reading.ingresses}
            seen = Seen(ages_s, reading.up_s)
        self._book.tick(self._now(), seen)

    async def exchange(self, report: HolderReport) -> SplitReply | None:
        """The reply to a report; None when there is none, or it could not be stored."""
        async with self._one_at_a_time:
            reply = self._book.take(report, self._now())
            return reply if await self._stored() else None

    async def recall(self, report: HolderReport, surrender: Surrender) -> SplitReply | None:
        """Gather for one ingress what the others do not need; the last reply to its report.

        The caller bounds the time: what was gathered by then goes out with the next exchange.
        """
        reply = await self.exchange(report)
        replies: dict[str, SplitReply] = {}
        wanted = tuple(key for key, one in report.holdings.items() if one.want)
        for _ in range(RECALL_ROUNDS):
            now = self._now()
            if not self._book.lacks(report.ingress, now) or not self._book.owing(
                report.ingress, now
            ):
                break
            for other in await surrender(dict(replies), wanted):
                if other.ingress != report.ingress:
                    await self._answer(other, replies)
        return (await self._afresh(report) if replies else None) or reply

    async def _afresh(self, report: HolderReport) -> SplitReply | None:
        async with self._one_at_a_time:
            reply = self._book.afresh(report, self._now())
            return reply if await self._stored() else None

    async def _answer(self, report: HolderReport, replies: dict[str, SplitReply]) -> None:
        reply = await self.exchange(report)
        if reply is not None:
            replies[report.ingress] = reply

    async def _stored(self) -> bool:
        snapshot = json.dumps(self._book.snapshot(), sort_keys=True).encode()
        if snapshot == self._saved:
            return True
        try:
            await self._save(snapshot)
        except ModelyardError as error:
            log.warning("a grant was not stored, so it is not given: %s", error)
            return False
        self._saved = snapshot
        return True
